"""Budgeted maximum coverage over units: what each term is worth, and which units together are worth most for their size.

Khuller, Moss and Naor (1999) state the problem and the bound of the greedy, Lin and Bilmes (2011) brought it to text, Minoux (1978) made the
greedy lazy. All arithmetic is in whole numbers, so a choice is the same on every machine.
"""
