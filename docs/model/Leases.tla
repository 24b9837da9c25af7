-------------------------------- MODULE Leases --------------------------------
(* How processes take a lease by numbered claims, and how a new holder keeps its predecessor from changing a table. *)
(*                                                                                                                  *)
(* Each action is one operation on the object store, by one process. The comment above `Step` has its function in   *)
(* the code; `Plan` reads a version, as a compaction does. Time is not modelled: any process may find at any moment *)
(* that the holder gave no sign of life for long enough, so a holder may be dead, stalled or well, and may learn    *)
(* late or never that it was replaced.                                                                              *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Processes,    \* a set of names
  MaxTokens,    \* no claim has a greater number
  MaxAppends,   \* commits of a stream, which needs no lease
  MaxCrashes,
  Without       \* mechanisms that are left out, to see that the model needs them

VARIABLES
  claims,   \* by number: which run of which process
  ends,     \* numbers that were released
  log,      \* the table's log: a sequence of entries
  late,     \* puts of dead processes that may still arrive
  process,  \* the memory of each process
  crashes,
  holders,  \* history: by number, the runs that held the lease
  began     \* history: by number, the length of the log when the holder began to work

vars == <<claims, ends, log, late, process, crashes, holders, began>>
history == <<holders, began>>

Has(mechanism) == mechanism \notin Without
Max(numbers) == CHOOSE n \in numbers \union {0} : \A m \in numbers : m <= n
Min(numbers) == CHOOSE n \in numbers : \A m \in numbers : n <= m
Restrict(f, keys) == [key \in keys |-> f[key]]
Numbers == DOMAIN claims \union ends

Fresh(run) == [at |-> "look", run |-> run, token |-> 0, tookOver |-> FALSE, version |-> 0, base |-> 0]

At(p, action) == process[p].at = action
Go(p, memory) == process' = [process EXCEPT ![p] = memory]
To(p, action) == Go(p, [process[p] EXCEPT !.at = action])
Again(p) == Go(p, Fresh(process[p].run))
Put(put) == log' = IF Len(log) + 1 = put.version THEN Append(log, put.entry) ELSE log
Run(p) == <<p, process[p].run>>

IsTakenOver(p) == process[p].token + 1 \in DOMAIN claims \/ process[p].token \notin DOMAIN claims

---------------------------------------------------------------------------------------------------------------------
(* To take the lease *)

\* The newest number, and whether its holder has released it, or seems dead.
Look(p) ==
  LET newest == Max(Numbers) IN
  /\ At(p, "look")
  /\ newest < MaxTokens
  /\ Go(p, [process[p] EXCEPT !.at = "claim", !.token = newest + 1, !.tookOver = newest # 0 /\ newest \notin ends])
  /\ UNCHANGED <<claims, ends, log, late, crashes, history>>

Claim(p) ==
  LET n == process[p].token IN
  /\ At(p, "claim")
  /\ IF n \in DOMAIN claims THEN Again(p) /\ UNCHANGED claims
     ELSE claims' = claims @@ (n :> Run(p)) /\ To(p, "check claim")
  /\ UNCHANGED <<ends, log, late, crashes, history>>

\* A number that others have cleaned up can be created again by a process that had stalled.
CheckClaim(p) ==
  LET me == process[p] IN
  /\ At(p, "check claim")
  /\ IF Max(Numbers) > me.token /\ Has("withdrawal")
     THEN To(p, "withdraw") /\ UNCHANGED history
     ELSE /\ holders' = (me.token :> ({Run(p)} \union IF me.token \in DOMAIN holders THEN holders[me.token] ELSE {}))
                        @@ holders
          /\ IF me.tookOver /\ Has("fence")
             THEN To(p, "read fence") /\ UNCHANGED began
             ELSE To(p, "plan") /\ began' = (me.token :> Len(log)) @@ began
  /\ UNCHANGED <<claims, ends, log, late, crashes>>

Withdraw(p) ==
  /\ At(p, "withdraw")
  /\ claims' = Restrict(claims, DOMAIN claims \ {process[p].token})
  /\ Again(p)
  /\ UNCHANGED <<ends, log, late, crashes, history>>

---------------------------------------------------------------------------------------------------------------------
(* A holder that has taken the lease over commits its number first. *)

Tokens == {log[i].token : i \in {i \in 1..Len(log) : log[i].kind = "fence"}}
Fence(p) == [kind |-> "fence", token |-> process[p].token, base |-> 0]

ReadFence(p) ==
  LET me == process[p] IN
  /\ At(p, "read fence")
  /\ Go(p, [me EXCEPT !.at = IF Max(Tokens) > me.token THEN "release" ELSE "put fence", !.version = Len(log) + 1])
  /\ UNCHANGED <<claims, ends, log, late, crashes, history>>

\* What another process has committed meanwhile: its token, if it is a fence.
IsNewer(entry, token) == entry.kind = "fence" /\ entry.token > token

PutFence(p) ==
  LET me == process[p] IN
  /\ At(p, "put fence")
  /\ IF me.version > Len(log)
     THEN /\ Put([version |-> me.version, entry |-> Fence(p)])
          /\ began' = (me.token :> me.version) @@ began
          /\ Go(p, [me EXCEPT !.at = "plan", !.version = 0])
     ELSE /\ Go(p, IF IsNewer(log[me.version], me.token) THEN [me EXCEPT !.at = "release"]
                   ELSE [me EXCEPT !.version = @ + 1])
          /\ UNCHANGED <<log, began>>
  /\ UNCHANGED <<claims, ends, late, crashes, holders>>

---------------------------------------------------------------------------------------------------------------------
(* To replace files: read a version, write files, put the entry behind what was only appended since. *)

Plan(p) ==
  /\ At(p, "plan")
  /\ Go(p, [process[p] EXCEPT !.at = "require", !.base = Len(log), !.version = Len(log) + 1])
  /\ UNCHANGED <<claims, ends, log, late, crashes, history>>

\* The heartbeat's thread may have seen another claim. If so, this process ends without a release. If not, the table is read
\* again: the version that was read first may be behind the fence of a newer holder.
Require(p) ==
  /\ At(p, "require")
  /\ \/ To(p, IF Has("token check") /\ Max(Tokens) > process[p].token THEN "release" ELSE "commit")
     \/ IsTakenOver(p) /\ Again(p)
  /\ UNCHANGED <<claims, ends, log, late, crashes, history>>

Rewrite(p) == [kind |-> "rewrite", token |-> process[p].token, base |-> process[p].base]

Commit(p) ==
  LET me == process[p] IN
  /\ At(p, "commit")
  /\ IF me.version > Len(log)
     THEN Put([version |-> me.version, entry |-> Rewrite(p)]) /\ To(p, "release")
     ELSE /\ Go(p, IF IsNewer(log[me.version], me.token) THEN [me EXCEPT !.at = "release"]
                   ELSE IF log[me.version].kind = "rewrite" THEN [me EXCEPT !.at = "plan"]
                   ELSE [me EXCEPT !.version = @ + 1])
          /\ UNCHANGED log
  /\ UNCHANGED <<claims, ends, late, crashes, history>>

---------------------------------------------------------------------------------------------------------------------
(* To release it, and delete what former holders left, in ascending order *)

Release(p) ==
  /\ At(p, "release")
  /\ \/ ends' = ends \union {process[p].token} /\ To(p, "clean up")
     \/ IsTakenOver(p) /\ Again(p) /\ UNCHANGED ends
  /\ UNCHANGED <<claims, log, late, crashes, history>>

CleanUp(p) ==
  LET old == {n \in Numbers : n < process[p].token - 1} IN
  /\ At(p, "clean up")
  /\ IF old = {} THEN Go(p, Fresh(process[p].run + 1)) /\ UNCHANGED <<claims, ends>>
     ELSE /\ claims' = Restrict(claims, DOMAIN claims \ {Min(old)})
          /\ ends' = ends \ {Min(old)}
          /\ UNCHANGED process
  /\ UNCHANGED <<log, late, crashes, history>>

---------------------------------------------------------------------------------------------------------------------

\* A stream appends meanwhile; it needs no lease.
Stream ==
  /\ Cardinality({i \in 1..Len(log) : log[i].kind = "append"}) < MaxAppends
  /\ log' = Append(log, [kind |-> "append", token |-> 0, base |-> 0])
  /\ UNCHANGED <<claims, ends, late, process, crashes, history>>

\* Before a write. A crash before a read leaves the same objects as one before the write that follows.
Crash(p) ==
  LET me == process[p] IN
  /\ me.at \in {"claim", "withdraw", "put fence", "commit", "release", "clean up"}
  /\ crashes < MaxCrashes
  /\ crashes' = crashes + 1
  /\ Go(p, Fresh(me.run + 1))
  /\ \/ late' = late
     \/ me.at = "commit" /\ late' = late \union {[version |-> me.version, entry |-> Rewrite(p)]}
  /\ UNCHANGED <<claims, ends, log, history>>

Arrive(put) ==
  /\ late' = late \ {put}
  /\ Put(put)
  /\ UNCHANGED <<claims, ends, process, crashes, history>>

Init ==
  /\ claims = <<>>
  /\ ends = {}
  /\ log = <<>>
  /\ late = {}
  /\ process = [p \in Processes |-> Fresh(1)]
  /\ crashes = 0
  /\ holders = <<>>
  /\ began = <<>>

(* The functions of the code:
   Look, Claim, CheckClaim: Lease._wait_for_former, Lease._withdraw_if_stale in gamelake/objects/leases.py
   Release: Lease.__exit__ in gamelake/objects/leases.py
   ReadFence, PutFence: _fence in gamelake/delta/rewrites.py
   Commit, Require: commit_rewrite in gamelake/delta/rewrites.py
   CleanUp: Lease._clean_up in gamelake/objects/leases.py
   Withdraw: Lease._withdraw_if_stale in gamelake/objects/leases.py
*)
Step(p) ==
  \/ Look(p) \/ Claim(p) \/ CheckClaim(p) \/ Withdraw(p) \/ ReadFence(p) \/ PutFence(p)
  \/ Plan(p) \/ Require(p) \/ Commit(p) \/ Release(p) \/ CleanUp(p)

\* The bound on numbers ends a run.
Ended == (\A p \in Processes : At(p, "look")) /\ Max(Numbers) >= MaxTokens /\ UNCHANGED vars

Next == (\E p \in Processes : Step(p) \/ Crash(p)) \/ Stream \/ (\E put \in late : Arrive(put)) \/ Ended

Spec == Init /\ [][Next]_vars /\ \A p \in Processes : WF_vars(Step(p))

---------------------------------------------------------------------------------------------------------------------
(* What must hold *)

\* A number, which is the fencing token, is held by one run of one process.
EachTokenHasOneHolder == \A n \in DOMAIN holders : Cardinality(holders[n]) = 1

Rewrites == {i \in 1..Len(log) : log[i].kind = "rewrite"}

\* No rewrite is committed behind the start of a newer holder if it was planned before.
OnlyTheNewestHolderHasAnEffect == \A i \in Rewrites : \A n \in DOMAIN began :
  n > log[i].token /\ i > began[n] => log[i].base >= began[n]

\* No rewrite was planned before one that is in front of it.
RewritesFollowEachOther == \A i, j \in Rewrites : i < j => log[j].base >= i

\* Progress: each process comes back to the start, or the bound on numbers stops it. TLC also checks for deadlocks.
EachProcessEnds == \A p \in Processes : []<>At(p, "look")
==============================================================================
