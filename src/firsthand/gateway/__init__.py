"""The gateway: any agent gets firsthand by pointing its base URL at a local server (design.md 9).

    client -> relay -> engine -> answering -> upstream
                         |
                         +-> paths (memory)   recorder -> journal
                         +-> compactor -> checkpoint -> stitch

How one request goes:

1. `relay` reads it whole, finds tenant, upstream and wire, and asks the `engine`. Whatever is no request for a model passes byte for byte.
2. `request` takes the body apart into spans of its very bytes (`scan`); a message seen before is known by its exact hash and not parsed again.
3. `paths` finds the longest path whose match keys (`keys`, `wires`) the request continues; what is new gets entry ids. A form of a known
   message with other bytes is a revision; another key is a branch, which is a fork in the journal. Session keys only narrow the search.
4. `recorder` writes what is new behind the request, in one thread: entries come from requests, a reply is pending until one shows it.
5. The engine measures: the provider's last count and estimates of what came since. Below the trigger the body is forwarded byte for byte.
6. Above it, `compacting` makes the runtime's own compaction over the journal's view. Its front is rendered once and stored; `stitch` puts these
   bytes in place of what they cover and copies everything else as slices of this very request, so requests extend each other between two
   checkpoints as far as the client's own do.
7. `answering` sends it on, relays the answer as it comes, and reads a copy (`replies`) for usage and for its terminal mark. A refusal as too large
   is answered by one compaction and one replay; a stream that breaks at the provider breaks at the client.

Why the gateway does not use a `Session`: a session writes its requests from entries, and here the client's bytes must travel. So it stands on
the same parts one floor below (journal, checkpoint store, the compaction generator, the overflow table) and keeps the bytes itself.

What fails in here never costs a request: it goes through as it came, with an error in the log and in the header `x-firsthand-error`.

Needs the extra `gateway`. Modules: `config` (settings), `app` (ASGI), `serving` (HTTP server, `Gateway` for programs).
"""
