"""The lab: what fills the window, what each strategy keeps, and what an agent forgot and needed later."""
