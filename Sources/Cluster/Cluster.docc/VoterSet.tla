----------------------------- MODULE VoterSet -----------------------------
(***************************************************************************)
(* The counted set and the fence, as Fence.md argues them: single-decree   *)
(* Paxos for each generation among the members of a set decides the next;  *)
(* votes name what their voters have synced; nobody changes a set that is  *)
(* not settled; a node is current by contacts with a majority.             *)
(* What is left out, and why that hides nothing:                           *)
(*  - Who proposes what, and when. Here any member of a settled set begins *)
(*    any change at any time, fenced or not.                               *)
(*  - Links. A record that is synced at its writer may be read by anybody  *)
(*    at any time, or never; so may what a majority has synced.            *)
(*  - Clocks. An instant is what has happened before it: of a contact only *)
(*    counts which purges were durable when its question was sent, and     *)
(*    whether the asker knew by then that its set, and the one before, was *)
(*    settled. The length of the fence is not needed: whoever is current   *)
(*    at a purge's instant plus one fence, or later, is so by contacts     *)
(*    that were all asked after the purge was durable.                     *)
(*  - An answer that comes late. A question that is sent earlier proves    *)
(*    less, so the last moment before the answer stands for all.           *)
(* Not covered: opening, forgetting several by the operator's word, names. *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, Sequences, TLC

CONSTANTS
    Nodes,       \* all of them, counted or not
    First,       \* the members of the first set, which is settled
    Purges,
    Ballots,     \* numbers; of all generations together
    Changes,     \* how many changes a line goes through at most
    Crashes,     \* how many crashes there are at most
    Recoveries,  \* how many lines the operator has opened at most
    Settling,    \* FALSE is a mistake: a set is settled when it is decided
    None

Symmetry == Permutations(First)

VARIABLES
    disk,      \* records of the count that are synced at their writers
    waiting,   \* what a node has written and not synced, in order
    applied,   \* the purges that no decision of a node misses any more
    synced,    \* the purges on a node's disk, which it names
    standing,  \* what a node knows: a set and, until it is settled, the one before
    joined,    \* the line that a node follows by a record that is synced
    before,    \* the set before a node's, if contacts since it was settled count
    contact,   \* of each node with each: as below
    marked,    \* purges that were durable when a node marked all it holds as unknown
    owner,     \* who has begun a ballot, on which set
    issued,    \* purges that were issued
    durable,   \* purges that a majority of the newest decided set has synced, once
    crashes

vars == <<disk, waiting, applied, synced, standing, joined, before, contact, marked, owner,
          issued, durable, crashes>>

-----------------------------------------------------------------------------
\* Sets

FirstSet == [recovery |-> 0, opener |-> None, generation |-> 1, members |-> First]

Line(s) == <<s.recovery, s.opener>>

IsMajority(nodes, s) == 2 * Cardinality(nodes \cap s.members) > Cardinality(s.members)

\* One member more, or one less.
NextSets(s) ==
    LET more == {s.members \union {n} : n \in Nodes \ s.members}
        less == {s.members \ {n} : n \in s.members} \ {{}}
    IN  {[s EXCEPT !.generation = @ + 1, !.members = m] : m \in more \union less}

IsSettled(st) == st.previous = None

Votes(d) == {r \in d : r.kind = "vote"}

VotesOn(d, base, b) == {v \in Votes(d) : v.base = base /\ v.ballot = b}

Voters(d, base, b) == {v.member : v \in VotesOn(d, base, b)}

\* What is decided on the disks `d`: the first set of each line, and what a majority has voted for.
Decided(d) ==
    {FirstSet}
        \union {r.base : r \in {j \in d : j.kind = "joined" /\ j.base.generation = 1}}
        \union {r.next : r \in {v \in Votes(d) : IsMajority(Voters(d, v.base, v.ballot), v.base)}}

Newest(d) ==
    CHOOSE s \in Decided(d) : \A t \in Decided(d) :
        \/ s.recovery > t.recovery
        \/ s.recovery = t.recovery /\ s.generation >= t.generation

\* Nothing more becomes durable in a line that somebody has left already: who confirms says so.
Durable(d, held) ==
    IF \E n \in Nodes : standing[n].set.recovery > Newest(d).recovery
        THEN {}
        ELSE {p \in Purges : IsMajority({n \in Nodes : p \in held[n]}, Newest(d))}

\* A majority of set `s` has synced all that the votes for it name, which a majority gave.
SettledOnDisk(s, base) ==
    \E b \in Ballots : \E quorum \in SUBSET Voters(disk, base, b) :
        /\ IsMajority(quorum, base)
        /\ LET cast == {v \in VotesOn(disk, base, b) : v.member \in quorum}
               named == UNION {v.holds : v \in cast}
           IN  /\ \A v \in cast : v.next = s
               /\ ~Settling \/ IsMajority({n \in Nodes : named \subseteq synced[n]}, s)

-----------------------------------------------------------------------------
\* Contacts

\* A contact is the newest question of a node to a member whose answer it has applied: which
\* purges that the asker lacks were durable when it was sent; whether the asker knew that its set
\* was settled; whether it knew that the set before was. Most say nothing of a purge.
NoContact == [asked |-> {}, isSettled |-> FALSE, isJoint |-> FALSE]

MadeContact(asked, isSettled, isJoint) ==
    IF asked = {} \/ ~(isSettled \/ isJoint) THEN NoContact
        ELSE [asked |-> asked, isSettled |-> isSettled, isJoint |-> isJoint]

\* Of no use any more for a purge that is applied.
Apply(contacts, p) ==
    [m \in Nodes |->
        MadeContact(contacts[m].asked \ {p}, contacts[m].isSettled, contacts[m].isJoint)]

\* The set is settled from now on.
Settle(contacts) ==
    [m \in Nodes |-> MadeContact(contacts[m].asked, FALSE, contacts[m].isJoint)]

\* The next set is followed, by one who knew that the one before is settled.
Step(contacts) ==
    [m \in Nodes |-> MadeContact(contacts[m].asked, FALSE, contacts[m].isSettled)]

NoContacts == [m \in Nodes |-> NoContact]

\* Node `n` is current one fence after purge `p` was durable, or can be.
IsProvenAfter(n, p) ==
    LET st == standing[n]
        Asked(flag) == {m \in Nodes : m = n \/ (p \in contact[n][m].asked /\ flag[m])}
        bySet == Asked([m \in Nodes |-> contact[n][m].isSettled])
        byBoth == Asked([m \in Nodes |-> contact[n][m].isJoint])
    IN  /\ joined[n] = Line(st.set)
        /\ \/ IsSettled(st) /\ IsMajority(bySet, st.set)
           \/ /\ before[n] # None
              /\ IsMajority(byBoth, st.set)
              /\ IsMajority(byBoth, before[n])

-----------------------------------------------------------------------------
\* What a node knows of itself

Written(n) == {waiting[n][i] : i \in DOMAIN waiting[n]}

Own(n) == {r \in disk : r.member = n} \union {r \in Written(n) : r.kind # "purge"}

OwnOn(n, s) == {r \in Own(n) : r.kind # "joined" /\ r.base = s}

Highest(numbers) == IF numbers = {} THEN 0 ELSE CHOOSE b \in numbers : \A c \in numbers : c <= b

\* The highest ballot that it has promised or voted in, synced or not.
Promised(n, s) == Highest({r.ballot : r \in OwnOn(n, s)})

HasVoted(n, s, b) == \E r \in OwnOn(n, s) : r.kind = "vote" /\ r.ballot = b

LastVote(votes) ==
    IF votes = {}
        THEN None
        ELSE LET v == CHOOSE v \in votes : \A w \in votes : w.ballot <= v.ballot
             IN  [ballot |-> v.ballot, next |-> v.next]

VotedOn(n, s) == LastVote({r \in OwnOn(n, s) : r.kind = "vote"})

MayVote(n) ==
    LET st == standing[n]
    IN  IsSettled(st) /\ joined[n] = Line(st.set) /\ n \in st.set.members

Write(n, item) == waiting' = [waiting EXCEPT ![n] = Append(@, item)]

PromiseOf(n, s, b) ==
    [kind |-> "promise", base |-> s, member |-> n, ballot |-> b, voted |-> VotedOn(n, s)]

VoteOf(n, s, b, next) ==
    [kind |-> "vote", base |-> s, member |-> n, ballot |-> b, next |-> next, holds |-> synced[n]]

JoinOf(n, st) ==
    [kind |-> "joined", base |-> st.set, member |-> n, previous |-> st.previous]

-----------------------------------------------------------------------------
\* Voting

allButVotes == <<disk, applied, synced, standing, joined, before, contact, marked, issued,
                 durable, crashes>>

\* A ballot's owner calls for promises by its own.
Begin(n, b) ==
    LET s == standing[n].set
    IN  /\ MayVote(n) /\ s.generation <= Changes
        /\ owner[b] = None /\ b > Promised(n, s)
        /\ owner' = [owner EXCEPT ![b] = [node |-> n, base |-> s]]
        /\ Write(n, PromiseOf(n, s, b))
        /\ UNCHANGED allButVotes

IsOwnersRecord(r, b) ==
    r.kind # "joined" /\ r.ballot = b /\ r.base = owner[b].base /\ r.member = owner[b].node

Promise(n, b) ==
    LET s == standing[n].set
    IN  /\ MayVote(n) /\ owner[b] # None /\ owner[b].base = s /\ b > Promised(n, s)
        /\ \E r \in disk : IsOwnersRecord(r, b)
        /\ Write(n, PromiseOf(n, s, b))
        /\ UNCHANGED <<owner, allButVotes>>

\* What a majority has promised may have been decided goes first, or else any change.
Propose(n, b) ==
    LET s == standing[n].set
        promises == {r \in disk : r.kind = "promise" /\ r.base = s /\ r.ballot = b}
        Earlier(quorum) == LastVote(
            {r.voted : r \in {q \in promises : q.member \in quorum /\ q.voted # None}})
    IN  /\ MayVote(n) /\ owner[b] = [node |-> n, base |-> s]
        /\ Promised(n, s) = b /\ ~HasVoted(n, s, b)
        /\ \E quorum \in SUBSET {r.member : r \in promises} :
            /\ IsMajority(quorum, s)
            /\ LET earlier == Earlier(quorum)
               IN  \E next \in NextSets(s) :
                    /\ earlier # None => next = earlier.next
                    /\ Write(n, VoteOf(n, s, b, next))
        /\ UNCHANGED <<owner, allButVotes>>

Vote(n, b) ==
    LET s == standing[n].set
    IN  /\ MayVote(n) /\ owner[b] # None /\ owner[b].base = s /\ b >= Promised(n, s)
        /\ ~HasVoted(n, s, b)
        /\ \E r \in Votes(disk) :
            /\ IsOwnersRecord(r, b)
            /\ Write(n, VoteOf(n, s, b, r.next))
        /\ UNCHANGED <<owner, allButVotes>>

-----------------------------------------------------------------------------
\* Knowing

allButKnown == <<disk, applied, synced, joined, owner, issued, durable, crashes>>

\* Follows `st`; `contacts` are what the node has with others as of before.
Adopt(n, st, contacts) ==
    LET ours == standing[n]
        isNextStep ==
            Line(st.set) = Line(ours.set) /\ st.set.generation = ours.set.generation + 1
        isNewLine == Line(st.set) # Line(ours.set)
    IN  /\ standing' = [standing EXCEPT ![n] = st]
        /\ IF isNextStep /\ IsSettled(ours)
               THEN /\ before' = [before EXCEPT ![n] = ours.set]
                    /\ contact' = [contact EXCEPT ![n] = Step(contacts)]
               ELSE /\ before' = [before EXCEPT ![n] = st.previous]
                    /\ contact' = [contact EXCEPT ![n] = NoContacts]
        /\ IF isNewLine
               THEN /\ marked' = [marked EXCEPT ![n] = durable]
                    /\ Write(n, JoinOf(n, st))
               ELSE UNCHANGED <<marked, waiting>>

\* The votes for the next set were read.
Learn(n) ==
    LET s == standing[n].set
    IN  /\ IsSettled(standing[n])
        /\ \E next \in Decided(disk) :
            /\ Line(next) = Line(s) /\ next.generation = s.generation + 1
            /\ Adopt(n, [set |-> next, previous |-> s], contact[n])
        /\ UNCHANGED allButKnown

LearnSettled(n) ==
    LET st == standing[n]
    IN  /\ ~IsSettled(st) /\ SettledOnDisk(st.set, st.previous)
        /\ standing' = [standing EXCEPT ![n].previous = None]
        /\ contact' = [contact EXCEPT ![n] = Settle(@)]
        /\ UNCHANGED <<allButKnown, waiting, before, marked>>

\* A question to `m`, sent just before `m` says what it has synced and what it knows. It counts if
\* all that is applied, from before whatever the answer teaches.
Ask(n, m) ==
    LET ours == standing[n]
        theirs == standing[m]
        made == MadeContact(durable \ applied[n], IsSettled(ours), before[n] # None)
        contacts == IF synced[m] \subseteq applied[n]
                        THEN [contact[n] EXCEPT ![m] = made] ELSE contact[n]
        isNews == \/ theirs.set.recovery > ours.set.recovery
                  \/ Line(theirs.set) = Line(ours.set)
                        /\ theirs.set.generation > ours.set.generation
    IN  /\ n # m
        /\ IF isNews
               THEN Adopt(n, theirs, contacts)
               ELSE /\ IF theirs.set = ours.set /\ IsSettled(theirs) /\ ~IsSettled(ours)
                           THEN /\ standing' = [standing EXCEPT ![n].previous = None]
                                /\ contact' = [contact EXCEPT ![n] = Settle(contacts)]
                           ELSE /\ contact' = [contact EXCEPT ![n] = contacts]
                                /\ UNCHANGED standing
                    /\ UNCHANGED <<before, marked, waiting>>
        /\ UNCHANGED allButKnown

-----------------------------------------------------------------------------
\* Purges, disks and the operator

Purge(n, p) ==
    /\ p \notin issued \/ \E m \in Nodes : p \in synced[m]
    /\ p \notin applied[n]
    /\ issued' = issued \union {p}
    /\ applied' = [applied EXCEPT ![n] = @ \union {p}]
    /\ contact' = [contact EXCEPT ![n] = Apply(@, p)]
    /\ Write(n, [kind |-> "purge", purge |-> p])
    /\ UNCHANGED <<disk, synced, standing, joined, before, marked, owner, durable, crashes>>

\* The oldest of what a node has written is on its disk.
Sync(n) ==
    /\ waiting[n] # <<>>
    /\ waiting' = [waiting EXCEPT ![n] = Tail(@)]
    /\ LET item == Head(waiting[n])
       IN  /\ IF item.kind = "purge"
                  THEN synced' = [synced EXCEPT ![n] = @ \union {item.purge}]
                  ELSE UNCHANGED synced
           /\ disk' = disk \union (IF item.kind = "purge" THEN {} ELSE {item})
           /\ IF item.kind = "joined"
                  THEN joined' = [joined EXCEPT ![n] = Line(item.base)] ELSE UNCHANGED joined
           /\ durable' = durable \union Durable(disk', synced')
    /\ UNCHANGED <<applied, standing, before, contact, marked, owner, issued, crashes>>

\* What a node knows by its own records alone.
Remembered(n) ==
    LET own == {r \in disk : r.member = n /\ Line(r.base) = joined[n]}
        last == CHOOSE r \in own : \A q \in own :
                    \/ r.base.generation > q.base.generation
                    \/ r.base.generation = q.base.generation
                        /\ (r.kind = "joined" => q.kind = "joined")
    IN  IF own = {}
            THEN [set |-> FirstSet, previous |-> None]
            ELSE [set |-> last.base,
                  previous |-> IF last.kind = "joined" THEN last.previous ELSE None]

\* A crash and the next start: what was not synced is lost, and of what was read what was not.
Crash(n) ==
    /\ crashes < Crashes
    /\ crashes' = crashes + 1
    /\ waiting' = [waiting EXCEPT ![n] = <<>>]
    /\ applied' = [applied EXCEPT ![n] = synced[n]]
    /\ marked' = [marked EXCEPT ![n] = IF joined[n] = Line(standing[n].set) THEN @ ELSE {}]
    /\ \E st \in {Remembered(n)}
            \union (IF joined[n] = Line(standing[n].set) THEN {standing[n]} ELSE {}) :
        /\ standing' = [standing EXCEPT ![n] = st]
        /\ before' = [before EXCEPT ![n] = st.previous]
    /\ contact' = [contact EXCEPT ![n] = NoContacts]
    /\ UNCHANGED <<disk, synced, joined, owner, issued, durable>>

\* By the operator's word, who says it once, and that nobody runs who does not hear of it.
Recover(n) ==
    LET set == [recovery |-> standing[n].set.recovery + 1, opener |-> n, generation |-> 1,
                members |-> {n}]
    IN  /\ standing[n].set.recovery < Recoveries
        /\ \A m \in Nodes : standing[m].set.recovery < set.recovery
        /\ \A s \in Decided(disk) : s.recovery < set.recovery
        /\ Adopt(n, [set |-> set, previous |-> None], NoContacts)
        /\ UNCHANGED allButKnown

-----------------------------------------------------------------------------

Init ==
    /\ disk = {}
    /\ waiting = [n \in Nodes |-> <<>>]
    /\ applied = [n \in Nodes |-> {}]
    /\ synced = [n \in Nodes |-> {}]
    /\ standing = [n \in Nodes |-> [set |-> FirstSet, previous |-> None]]
    /\ joined = [n \in Nodes |-> Line(FirstSet)]
    /\ before = [n \in Nodes |-> None]
    /\ contact = [n \in Nodes |-> NoContacts]
    /\ marked = [n \in Nodes |-> {}]
    /\ owner = [b \in Ballots |-> None]
    /\ issued = {}
    /\ durable = {}
    /\ crashes = 0

\* By the operator's word, who does not follow the newest line does nothing but hear of it.
Runs(n) == \A m \in Nodes : standing[m].set.recovery <= standing[n].set.recovery

Next ==
    \E n \in Nodes :
        \/ /\ Runs(n)
           /\ \/ \E b \in Ballots : Begin(n, b) \/ Promise(n, b) \/ Propose(n, b) \/ Vote(n, b)
              \/ Learn(n) \/ LearnSettled(n)
              \/ \E p \in Purges : Purge(n, p)
              \/ Sync(n) \/ Recover(n)
        \/ \E m \in Nodes : Ask(n, m)
        \/ Crash(n)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
\* What holds

\* A generation of a line has one set.
Agreement ==
    \A s, t \in Decided(disk) :
        Line(s) = Line(t) /\ s.generation = t.generation => s = t

\* Nobody follows a set that is neither decided nor the first of a line.
Followed ==
    \A n \in Nodes :
        \/ standing[n].set \in Decided(disk)
        \/ standing[n].set.opener # None /\ standing[n].set.generation = 1

\* Whoever is current a fence after a purge was durable has applied it, or has since then marked
\* all that it holds as unknown. By the operator's word only the newest line runs.
PromiseHolds ==
    \A n \in Nodes : \A p \in durable :
        (Line(standing[n].set) = Line(Newest(disk)) /\ IsProvenAfter(n, p))
            => p \in applied[n] \union marked[n]

=============================================================================
