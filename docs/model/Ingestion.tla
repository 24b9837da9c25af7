------------------------------ MODULE Ingestion ------------------------------
(* How the streams of Gamelake decide batches and commit them to several Delta tables.                             *)
(*                                                                                                                 *)
(* Each action is one operation on the object store, by one driver. The comment above `Step` has its function in   *)
(* the code. A stall is a driver that takes no step for a while, so none is modelled by itself. A lost reply ends  *)
(* the driver: a crash after the operation. A request of a dead driver may still arrive: `late`.                   *)
(*                                                                                                                 *)
(* The log of a table as objects that are put if absent, and commits that read the newest version and put the next *)
(* one, follow J. Vanlightly, "Delta Lake", github.com/Vanlightly/table-formats-tlaplus (2024, MIT).               *)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  KafkaDrivers, FilesDrivers,   \* sets of names; drivers of one stream start in one generation
  KafkaEvents, FilesEvents,     \* the event of each record, in the order of offsets
  MaxCrashes, MaxGenerations, MaxLate,
  Kept,                         \* the newest settle records, which stay
  Without                       \* mechanisms that are left out, to see that the model needs them

VARIABLES
  generations,  \* by stream: a sequence of generation records
  plans,        \* the files offsets/N of all checkpoints
  marked,       \* by stream and generation: the newest of the files commits/N
  manifests,    \* by stream: manifests by batch
  records,      \* settle records by number; each holds a manifest
  log,          \* by table: a sequence of log entries
  late,         \* puts of dead drivers that may still arrive
  driver,       \* the memory of each driver
  crashes

vars == <<generations, plans, marked, manifests, records, log, late, driver, crashes>>
lake == <<generations, plans, marked, manifests, records, log>>

Has(mechanism) == mechanism \notin Without

Streams == {"kafka", "files"}
Tables == {"bronze", "silver"}
Drivers == KafkaDrivers \union FilesDrivers
StreamOf(d) == IF d \in KafkaDrivers THEN "kafka" ELSE "files"
Other(s) == IF s = "kafka" THEN "files" ELSE "kafka"
Topic(s) == IF s = "kafka" THEN KafkaEvents ELSE FilesEvents

Max(numbers) == CHOOSE n \in numbers \union {0} : \A m \in numbers : m <= n
Restrict(f, keys) == [key \in keys |-> f[key]]
None == [none |-> TRUE]

---------------------------------------------------------------------------------------------------------------------
(* Manifests, and what they put into tables *)

Events(m) == {Topic(m.stream)[offset] : offset \in (m.from + 1)..m.to}
Rows(m, t) == IF t = "bronze" THEN {<<m.stream, offset>> : offset \in (m.from + 1)..m.to} ELSE m.taken
TablesOf(m) == {t \in Tables : Rows(m, t) # {}}
Entry(m, t) == [stream |-> m.stream, gen |-> m.gen, batch |-> m.batch, rows |-> Rows(m, t)]
IsIn(m, t) == \E i \in 1..Len(log[t]) :
  log[t][i].stream = m.stream /\ log[t][i].gen = m.gen /\ log[t][i].batch >= m.batch

Batches(s) == DOMAIN manifests[s]
Last(s) == Max(Batches(s))
End(s) == IF Last(s) = 0 THEN 0 ELSE manifests[s][Last(s)].to
Taken(s, batches) == UNION {manifests[s][b].taken : b \in batches}
InSilver == UNION {log["silver"][i].rows : i \in 1..Len(log["silver"])}

---------------------------------------------------------------------------------------------------------------------
(* The memory of a driver: `at` is its next action. *)

Fresh == [at |-> "", gen |-> 0, batch |-> 0, from |-> 0, to |-> 0, first |-> 0, seen |-> 0, number |-> 0,
          found |-> 0, follows |-> None, m |-> None, todo |-> {}, table |-> "", head |-> 0, then |-> ""]

\* A start begins with the newest settle record, `Follow...` below.
Down == [Fresh EXCEPT !.at = "follow", !.then = "finish"]

Go(d, memory) == driver' = [driver EXCEPT ![d] = memory]
At(d, action) == driver[d].at = action
To(d, action) == Go(d, [driver[d] EXCEPT !.at = action])

\* To commit a manifest to all tables that lack it, then go on with another action.
Committing(d, m, next) == [driver[d] EXCEPT !.at = "commit", !.m = m, !.todo = TablesOf(m), !.then = next]

CommitLast(d, next) ==
  IF Last(StreamOf(d)) = 0 THEN To(d, next) ELSE Go(d, Committing(d, manifests[StreamOf(d)][Last(StreamOf(d))], next))

---------------------------------------------------------------------------------------------------------------------
(* Start: finish the last batch, open the checkpoint. Here any start may find its checkpoint gone. *)

Finish(d) ==
  /\ At(d, "finish")
  /\ CommitLast(d, "open")
  /\ UNCHANGED <<lake, late, crashes>>

\* The batch before the checkpoint's next one may be decided by a driver that runs still: since `Finish`, and not committed.
Opened == IF Has("finish again") THEN "finish again" ELSE "plan"

Open(d) ==
  LET s == StreamOf(d) IN
  /\ At(d, "open")
  /\ \/ Go(d, [driver[d] EXCEPT !.at = Opened, !.gen = Len(generations[s])])
     \/ /\ Len(generations[s]) < MaxGenerations
        /\ Go(d, [driver[d] EXCEPT !.at = IF Has("one listing") THEN "add generation" ELSE "rebuild", !.gen = Len(generations[s]) + 1, !.from = End(s),
                                   !.first = Last(s) + 1])
  /\ UNCHANGED <<lake, late, crashes>>

\* Offsets and first batch must be of one listing; this reads the first batch by a later one.
Rebuild(d) ==
  /\ At(d, "rebuild")
  /\ Go(d, [driver[d] EXCEPT !.at = "add generation", !.first = Last(StreamOf(d)) + 1])
  /\ UNCHANGED <<lake, late, crashes>>

AddGeneration(d) ==
  LET s == StreamOf(d) me == driver[d] IN
  /\ At(d, "add generation")
  /\ IF Len(generations[s]) >= me.gen
     THEN Go(d, Down) /\ UNCHANGED <<generations, marked>>
     ELSE /\ generations' = [generations EXCEPT ![s] = Append(@, [first |-> me.first, from |-> me.from])]
          /\ marked' = [marked EXCEPT ![s] = Append(@, me.first - 1)]
          /\ To(d, Opened)
  /\ UNCHANGED <<plans, manifests, records, log, late, crashes>>

FinishAgain(d) ==
  /\ At(d, "finish again")
  /\ CommitLast(d, "plan")
  /\ UNCHANGED <<lake, late, crashes>>

---------------------------------------------------------------------------------------------------------------------
(* A batch: Spark plans its offsets, once for each generation and batch. *)

PlanOf(s, g, b) == {p \in plans : p.stream = s /\ p.gen = g /\ p.batch = b}
Position(s, g) == LET done == PlanOf(s, g, marked[s][g]) IN
  IF done = {} THEN generations[s][g].from ELSE (CHOOSE p \in done : TRUE).to

Plan(d) ==
  LET s == StreamOf(d) me == driver[d] b == marked[s][me.gen] + 1 IN
  /\ At(d, "plan")
  /\ IF PlanOf(s, me.gen, b) = {} /\ Position(s, me.gen) = Len(Topic(s))
     THEN Go(d, [Fresh EXCEPT !.at = "idle", !.gen = me.gen]) /\ UNCHANGED plans
     ELSE \E to \in (Position(s, me.gen) + 1)..Len(Topic(s)) :
       LET p == [stream |-> s, gen |-> me.gen, batch |-> b, from |-> Position(s, me.gen), to |-> to] IN
       /\ PlanOf(s, me.gen, b) \subseteq {p}
       /\ plans' = plans \union {p}
       /\ Go(d, [driver[d] EXCEPT !.at = "check", !.batch = b, !.from = p.from, !.to = p.to])
  /\ UNCHANGED <<generations, marked, manifests, records, log, late, crashes>>

\* The manifest of a batch, of the events that are not known.
Deciding(d, me, known) ==
  LET m == [stream |-> StreamOf(d), gen |-> me.gen, batch |-> me.batch, from |-> me.from, to |-> me.to]
      read == {Topic(m.stream)[offset] : offset \in (me.from + 1)..me.to} IN
  [me EXCEPT !.m = m @@ [taken |-> read \ known, by |-> <<d, crashes>>],
             !.at = IF Has("settle records") THEN "follow" ELSE "verify", !.then = "verify"]

\* A batch that is decided already is committed, unless another generation's driver has decided it.
Follow(d, m) == IF m.gen # driver[d].gen THEN To(d, "stopped") ELSE Go(d, Committing(d, m, "mark"))

Check(d) ==
  LET s == StreamOf(d) b == driver[d].batch IN
  /\ At(d, "check")
  /\ IF b \in Batches(s) THEN Follow(d, manifests[s][b]) ELSE To(d, "refresh")
  /\ UNCHANGED <<lake, late, crashes>>

\* The stream of Kafka records searches the manifests of both, which it reads now; the one of files searches silver, later,
\* and the newest batch of the other stream, which silver may lack.
Refresh(d) ==
  LET me == driver[d] seen == Last(Other(StreamOf(d))) IN
  /\ At(d, "refresh")
  /\ Go(d, IF StreamOf(d) = "files" THEN [me EXCEPT !.at = "decide", !.seen = seen]
           ELSE Deciding(d, [me EXCEPT !.seen = seen], Taken("kafka", 1..(me.batch - 1)) \union Taken("files", 1..seen)))
  /\ UNCHANGED <<lake, late, crashes>>

Decide(d) ==
  /\ At(d, "decide")
  /\ Go(d, Deciding(d, driver[d], InSilver \union Taken("kafka", {driver[d].seen} \ {0})))
  /\ UNCHANGED <<lake, late, crashes>>

---------------------------------------------------------------------------------------------------------------------
(* Settle records: follow the newest, complete its manifest, take the next number. *)

FollowList(d) ==
  LET newest == Max(DOMAIN records) IN
  /\ At(d, "follow")
  /\ IF newest = driver[d].number THEN To(d, driver[d].then)
     ELSE Go(d, [driver[d] EXCEPT !.at = "follow read", !.found = newest])
  /\ UNCHANGED <<lake, late, crashes>>

FollowRead(d) ==
  LET n == driver[d].found IN
  /\ At(d, "follow read")
  /\ IF n \notin DOMAIN records THEN To(d, "follow")
     ELSE Go(d, [driver[d] EXCEPT !.follows = records[n],
                                  !.at = IF Has("second listing") THEN "follow again" ELSE "complete"])
  /\ UNCHANGED <<lake, late, crashes>>

\* An old number may have been created again between the listing and the read.
FollowAgain(d) ==
  /\ At(d, "follow again")
  /\ IF Max(DOMAIN records) = driver[d].found THEN To(d, "complete")
     ELSE Go(d, [driver[d] EXCEPT !.at = "follow", !.follows = None])
  /\ UNCHANGED <<lake, late, crashes>>

PutManifest(m) ==
  manifests' = IF m.batch \in Batches(m.stream) THEN manifests
               ELSE [manifests EXCEPT ![m.stream] = @ @@ (m.batch :> m)]

Complete(d) ==
  /\ At(d, "complete")
  /\ PutManifest(driver[d].follows)
  /\ Go(d, [driver[d] EXCEPT !.at = "follow", !.number = driver[d].found, !.found = 0, !.follows = None])
  /\ UNCHANGED <<generations, plans, marked, records, log, late, crashes>>

\* Has the other stream decided one of the batch's events since `Refresh`?
Verify(d) ==
  LET s == StreamOf(d) me == driver[d]
      theirs == Taken(Other(s), {b \in Batches(Other(s)) : b > me.seen}) IN
  /\ At(d, "verify")
  /\ To(d, IF theirs \intersect me.m.taken # {} THEN "refresh"
           ELSE IF Has("settle records") THEN "record" ELSE "settle")
  /\ UNCHANGED <<lake, late, crashes>>

Record(d) ==
  /\ At(d, "record")
  /\ To(d, IF driver[d].batch \in Batches(StreamOf(d)) THEN "settle" ELSE "put record")
  /\ UNCHANGED <<lake, late, crashes>>

\* Another stream may have taken the number: what it has decided is read, and the same decision takes the next number.
PutRecord(d) ==
  LET n == driver[d].number + 1 IN
  /\ At(d, "put record")
  /\ IF n \in DOMAIN records
     THEN To(d, IF records[n] = driver[d].m THEN "check record" ELSE "follow") /\ UNCHANGED records
     ELSE records' = records @@ (n :> driver[d].m) /\ To(d, "check record")
  /\ UNCHANGED <<generations, plans, marked, manifests, log, late, crashes>>

\* With a higher number there, others have gone on from this record, or it is an old number created again.
CheckRecord(d) ==
  LET me == driver[d] s == StreamOf(d) n == me.number + 1 IN
  /\ At(d, "check record")
  /\ IF Max(DOMAIN records) <= n
     THEN Go(d, [me EXCEPT !.at = "clean up", !.number = n])
     ELSE IF ~Has("withdrawal") \/ (me.batch \in Batches(s) /\ manifests[s][me.batch] = me.m)
     THEN To(d, "settle")
     ELSE To(d, "withdraw")
  /\ UNCHANGED <<lake, late, crashes>>

Withdraw(d) ==
  /\ At(d, "withdraw")
  /\ records' = Restrict(records, DOMAIN records \ {driver[d].number + 1})
  /\ To(d, "follow")
  /\ UNCHANGED <<generations, plans, marked, manifests, log, late, crashes>>

\* The code does so after each fourth record alone: until then old numbers stay taken.
CleanUp(d) ==
  /\ At(d, "clean up")
  /\ records' = Restrict(records, {n \in DOMAIN records : n + Kept > driver[d].number})
  /\ To(d, "settle")
  /\ UNCHANGED <<generations, plans, marked, manifests, log, late, crashes>>

---------------------------------------------------------------------------------------------------------------------
(* The manifest, put if absent by batch alone, then one commit for each table, in any order. *)

Settle(d) ==
  LET m == driver[d].m IN
  /\ At(d, "settle")
  /\ PutManifest(m)
  /\ Follow(d, manifests'[m.stream][m.batch])
  /\ UNCHANGED <<generations, plans, marked, records, log, late, crashes>>

Done(me, t) == IF me.todo = {t} THEN [me EXCEPT !.at = me.then, !.todo = {}, !.m = None, !.table = "", !.head = 0]
               ELSE [me EXCEPT !.at = "commit", !.todo = @ \ {t}, !.table = "", !.head = 0]

\* Read the head of a table's log; a table that has the batch's transaction needs nothing.
ReadHead(d) ==
  LET me == driver[d] IN
  /\ At(d, "commit")
  /\ \E t \in me.todo :
       Go(d, IF Has("transaction check") /\ IsIn(me.m, t) THEN Done(me, t)
             ELSE [me EXCEPT !.at = "append", !.table = t, !.head = Len(log[t])])
  /\ UNCHANGED <<lake, late, crashes>>

\* The next version, put if absent.
AppendEntry(d) ==
  LET me == driver[d] t == me.table IN
  /\ At(d, "append")
  /\ IF Len(log[t]) = me.head
     THEN log' = [log EXCEPT ![t] = Append(@, Entry(me.m, t))] /\ Go(d, Done(me, t))
     ELSE To(d, "commit") /\ UNCHANGED log
  /\ UNCHANGED <<generations, plans, marked, manifests, records, late, crashes>>

Mark(d) ==
  LET s == StreamOf(d) me == driver[d] IN
  /\ At(d, "mark")
  /\ marked' = [marked EXCEPT ![s][me.gen] = Max({@, me.batch})]
  /\ Go(d, [Fresh EXCEPT !.at = "plan", !.gen = me.gen, !.number = me.number])
  /\ UNCHANGED <<generations, plans, manifests, records, log, late, crashes>>

---------------------------------------------------------------------------------------------------------------------
(* Faults *)

\* The put that a driver is about to send, as a request that is under way.
Pending(d) ==
  LET me == driver[d] IN
  CASE At(d, "put record") -> {[kind |-> "record", number |-> me.number + 1, m |-> me.m]}
    [] At(d, "settle") -> {[kind |-> "manifest", m |-> me.m]}
    [] At(d, "complete") -> {[kind |-> "manifest", m |-> me.follows]}
    [] At(d, "append") -> {[kind |-> "entry", table |-> me.table, head |-> me.head, m |-> me.m]}
    [] OTHER -> {}

\* Before a write. A crash before a read leaves the same lakehouse as one before the write that follows.
Crash(d) ==
  /\ driver[d].at \in {"add generation", "complete", "put record", "withdraw", "clean up", "settle", "append", "mark"}
  /\ crashes < MaxCrashes
  /\ crashes' = crashes + 1
  /\ Go(d, Down)
  /\ \/ late' = late
     \/ Cardinality(late) < MaxLate /\ Pending(d) # {} /\ late' = late \union Pending(d)
  /\ UNCHANGED lake

Arrive(put) ==
  /\ late' = late \ {put}
  /\ CASE put.kind = "record" ->
            /\ records' = IF put.number \in DOMAIN records THEN records ELSE records @@ (put.number :> put.m)
            /\ UNCHANGED <<manifests, log>>
       [] put.kind = "manifest" -> PutManifest(put.m) /\ UNCHANGED <<records, log>>
       [] put.kind = "entry" ->
            /\ log' = IF Len(log[put.table]) # put.head THEN log
                      ELSE [log EXCEPT ![put.table] = Append(@, Entry(put.m, put.table))]
            /\ UNCHANGED <<records, manifests>>
  /\ UNCHANGED <<generations, plans, marked, driver, crashes>>

\* A driver that met another generation's decision has stopped; a start helps if there is a newer generation, or can be.
CanRestart(d) == LET all == Len(generations[StreamOf(d)]) IN driver[d].gen < all \/ all < MaxGenerations

Restart(d) ==
  /\ At(d, "stopped")
  /\ CanRestart(d)
  /\ Go(d, Down)
  /\ UNCHANGED <<lake, late, crashes>>

---------------------------------------------------------------------------------------------------------------------

Init ==
  /\ generations = [s \in Streams |-> <<[first |-> 1, from |-> 0]>>]
  /\ plans = {}
  /\ marked = [s \in Streams |-> <<0>>]
  /\ manifests = [s \in Streams |-> <<>>]
  /\ records = <<>>
  /\ log = [t \in Tables |-> <<>>]
  /\ late = {}
  /\ driver = [d \in Drivers |-> Down]
  /\ crashes = 0

(* The functions of the code:
   Finish, FinishAgain: finish_last_batch, prepare in gamelake/streaming/driver/runner.py
   Open, Rebuild, AddGeneration: Stream.open, Stream.rebuild in gamelake/streaming/driver/stream.py
   Plan: CheckpointFolder.planned in gamelake/streaming/driver/checkpoint.py
   Check: FanOut._find in gamelake/streaming/driver/batch.py
   Refresh, Verify: ConcurrentStream.refresh, ConcurrentStream.is_clear in gamelake/streaming/dedup/cross_source.py
   Decide: FanOut._decide in gamelake/streaming/driver/batch.py
   FollowList, FollowRead, FollowAgain, Complete: SettleRecords.follow in gamelake/ledger/settle_records.py
   Record, PutRecord, CheckRecord, Withdraw, CleanUp: SettleRecords.add in gamelake/ledger/settle_records.py
   Settle: FanOut._settle in gamelake/streaming/driver/batch.py
   ReadHead: DeltaTables._append_once in gamelake/delta/tables.py
   AppendEntry: TableHead.put in gamelake/delta/appends.py
   Mark: CheckpointFolder.is_committed in gamelake/streaming/driver/checkpoint.py
   Restart: FanOut._check_ours in gamelake/streaming/driver/batch.py
*)
Step(d) ==
  \/ Finish(d) \/ Open(d) \/ Rebuild(d) \/ AddGeneration(d) \/ FinishAgain(d)
  \/ Plan(d) \/ Check(d) \/ Refresh(d) \/ Decide(d)
  \/ FollowList(d) \/ FollowRead(d) \/ FollowAgain(d) \/ Complete(d) \/ Verify(d)
  \/ Record(d) \/ PutRecord(d) \/ CheckRecord(d) \/ Withdraw(d) \/ CleanUp(d)
  \/ Settle(d) \/ ReadHead(d) \/ AppendEntry(d) \/ Mark(d) \/ Restart(d)

HasEnded(d) == At(d, "idle") \/ (At(d, "stopped") /\ ~CanRestart(d))
Ended == (\A d \in Drivers : HasEnded(d)) /\ UNCHANGED vars

Next == (\E d \in Drivers : Step(d) \/ Crash(d)) \/ (\E put \in late : Arrive(put)) \/ Ended

Spec == Init /\ [][Next]_vars /\ \A d \in Drivers : WF_vars(Step(d))

---------------------------------------------------------------------------------------------------------------------
(* What must hold *)

\* A record is in bronze once, an event in silver once.
EachRowOnce == \A t \in Tables : \A i, j \in 1..Len(log[t]) : i # j => log[t][i].rows \intersect log[t][j].rows = {}

\* Manifests of a stream follow each other, by batch and by offset.
EachRecordIsDecidedOnce == \A s \in Streams : \A b \in Batches(s) :
  manifests[s][b].from = (IF b = 1 THEN 0 ELSE IF b - 1 \in Batches(s) THEN manifests[s][b - 1].to ELSE -1)

\* An event of both sources is taken by one batch.
EachEventIsDecidedOnce == \A s, other \in Streams : \A b \in Batches(s) : \A c \in Batches(other) :
  <<s, b>> # <<other, c>> => manifests[s][b].taken \intersect manifests[other][c].taken = {}

\* A table has only what manifests name, and only the newest batch of a stream can be missing from one.
TablesFollowManifests ==
  /\ \A t \in Tables : \A i \in 1..Len(log[t]) : LET e == log[t][i] IN
       e.batch \in Batches(e.stream) /\ e = Entry(manifests[e.stream][e.batch], t)
  /\ \A s \in Streams : \A b \in Batches(s) \ {Last(s)} : \A t \in TablesOf(manifests[s][b]) : IsIn(manifests[s][b], t)

\* A manifest stays as it was put.
ManifestsStay == [][\A s \in Streams : \A b \in Batches(s) : manifests'[s][b] = manifests[s][b]]_vars

\* A driver that finds nothing more to read leaves nothing undone.
NothingIsLost == \A d \in Drivers : At(d, "idle") =>
  LET s == StreamOf(d) IN
  /\ End(s) = Len(Topic(s))
  /\ \A b \in Batches(s) : \A t \in TablesOf(manifests[s][b]) : IsIn(manifests[s][b], t)
  /\ \A i \in 1..Len(Topic(s)) : \E o \in Streams : \E b \in Batches(o) : Topic(s)[i] \in manifests[o][b].taken

\* Progress: each driver comes to an end of its records, or stops for an operator. Without it TLC's deadlock check holds.
EachDriverEnds == \A d \in Drivers : <>[]HasEnded(d)

---------------------------------------------------------------------------------------------------------------------
(* Topics, for the bounds in the .cfg files *)

Nothing == <<>>
OneEvent == <<"a">>
TwoEvents == <<"a", "b">>
=====================================================================================================================
