import Cluster
import Ground
import Testing
import Trials

@Suite("The invariant of changing voter sets")
struct FenceLawTests {
    enum Mutation: CaseIterable {
        case changeBeforeSettled
        case settledSetAtOnce
        case votesThatNameNothing
        case twoAtATime
    }

    @Test("Whatever majorities vote, settle and are asked, one that is asked has the purge")
    func law() {
        for seed in Trials.seeds(1...3_000) {
            var play = LawPlay(seed: seed, mutation: nil)
            #expect(play.isKept() == true, "seed \(seed)")
        }
    }

    @Test("Without any one of the rules the invariant fails", arguments: Mutation.allCases)
    func needed(mutation: Mutation) {
        let seed = (1...3_000 as ClosedRange<UInt64>).first { seed in
            var play = LawPlay(seed: seed, mutation: mutation)
            return !play.isKept()
        }
        #expect(seed != nil)
    }
}

/// Seven nodes, one purge, and a voter set changed by an adversary.
///
/// The purge spreads only where the rules require it: there is no repair.
private struct LawPlay {
    private let mutation: FenceLawTests.Mutation?
    private var dice: SplitMix64
    private let nodes = (1...7).map { FenceStage.node($0) }
    private var set = VoterSet(foundedBy: FenceStage.node(1))
    private var previous: VoterSet?
    /// The voters on the set, and whether their votes name the purge.
    private var votes: [NodeID: Bool] = [:]
    private var isNamed = false
    private var holders: [NodeID] = []
    private var isDurable = false

    init(seed: UInt64, mutation: FenceLawTests.Mutation?) {
        self.mutation = mutation
        dice = SplitMix64(seed: seed)
    }

    /// False as soon as a sufficient majority may not know a durable purge.
    mutating func isKept() -> Bool {
        let purgeAt = Int.random(in: 0..<60, using: &dice)
        for step in 0..<120 {
            if step >= purgeAt, !isDurable { purge() }
            if Bool.random(using: &dice) { vote() } else { settle() }
            if isDurable, !isSafe { return false }
        }
        return true
    }

    /// Syncs the purge on one more member.
    private mutating func purge() {
        if let member = set.members.filter({ !holders.contains($0) }).randomElement(using: &dice) {
            holders.append(member)
        }
        isDurable = set.isMajority(holders)
    }

    private mutating func vote() {
        guard previous == nil || mutation == .changeBeforeSettled else { return }
        guard let voter = set.members.randomElement(using: &dice), votes[voter] == nil else {
            return
        }
        votes[voter] = holders.contains(voter) && mutation != .votesThatNameNothing
        guard set.isMajority(Array(votes.keys)) else { return }
        let change: VoterSetChange =
            if let node = nodes.randomElement(using: &dice), !set.contains(node) {
                .add(node)
            } else {
                .remove(forgotten())
            }
        guard let next = set.applying(by: change) else { return }
        isNamed = votes.values.contains(true)
        votes = [:]
        previous = mutation == .settledSetAtOnce ? nil : set
        set = next
    }

    private mutating func forgotten() -> [NodeID] {
        let count = mutation == .twoAtATime ? 2 : 1
        return Array(set.members.shuffled(using: &dice).prefix(count)).sorted()
    }

    /// Syncs on a majority of the new set what the votes name, and no more.
    private mutating func settle() {
        guard previous != nil else { return }
        if isNamed {
            for member in set.members.shuffled(using: &dice) where !set.isMajority(holders) {
                if !holders.contains(member) { holders.append(member) }
            }
        }
        previous = nil
    }

    /// True if the nodes without the purge are too few for a round.
    private var isSafe: Bool {
        let others = nodes.filter { !holders.contains($0) }
        return !set.isMajority(others) || !(previous?.isMajority(others) ?? true)
    }
}
