------------------------------ MODULE OldNumber ------------------------------
(* One way through `Ingestion` that is too long for all ways to be tried: a driver reads a settle record whose       *)
(* number was deleted, and created again by another one that had stalled, between the listing and the read.          *)
EXTENDS Ingestion

HasBegun(d) == driver[d] # Down
IsAboutToPut(d) == At(d, "put record")
NumberOne == {n \in DOMAIN records : n = 1}

\* First the stream of files comes to its put and stalls. Then k1 puts records 1 and 2, while k2 stalls after its listing.
Guide ==
  /\ HasBegun("k1") => driver["f1"].number = 0 /\ driver["f1"].at \in {"put record", "check record", "settle", "withdraw"}
  /\ At("f1", "check record") => {n \in DOMAIN records : n > 1} # {}
  /\ driver["k2"].at \in {"follow", "follow read", "follow again", "complete"}
  /\ HasBegun("k2") => Batches("kafka") # {} \/ NumberOne # {}
  /\ driver["k2"].at \in {"follow again", "complete"} => 2 \in DOMAIN records
=============================================================================
