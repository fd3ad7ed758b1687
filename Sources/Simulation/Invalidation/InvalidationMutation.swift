import Cluster

/// What a simulated node does wrong on purpose, so that the checker can be seen to find it.
package struct InvalidationMutation: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// A process that starts again goes by the id of the one before.
    package static let numberReused = InvalidationMutation(rawValue: 1 << 0)
    /// A fenced node forgets whom it does not reach.
    package static let forgettingWhileFenced = InvalidationMutation(rawValue: 1 << 1)
    /// A node takes itself for current when one counted member has answered.
    package static let catchUpFromOneMember = InvalidationMutation(rawValue: 1 << 2)
    /// A contact counts from the moment at which the answer is read.
    package static let contactTimedFromAnswer = InvalidationMutation(rawValue: 1 << 3)
    /// A record that is written anew when its segment is reclaimed gets the stamp of that moment.
    package static let restampOnReinsertion = InvalidationMutation(rawValue: 1 << 4)
    /// Entries are stamped with an epoch that is not on disk, so that the next start has the same.
    package static let stampBeforeBootEpoch = InvalidationMutation(rawValue: 1 << 5)
    /// A mark is dropped when its record is confirmed.
    package static let markDroppedAtConfirmation = InvalidationMutation(rawValue: 1 << 6)
    /// A receipt looks at the counted members alone.
    package static let receiptWithoutJoiners = InvalidationMutation(rawValue: 1 << 7)
    /// A validation freshens as of the moment at which it came.
    package static let lateValidationFreshens = InvalidationMutation(rawValue: 1 << 8)
    /// Whether the fence is open is a flag that a timer sets.
    package static let fenceAsTimer = InvalidationMutation(rawValue: 1 << 9)
    /// A purge of a kind that is not known does nothing.
    package static let unknownPurgeSkipped = InvalidationMutation(rawValue: 1 << 10)
    /// A request that came after a purge is served by a fetch that began before it.
    package static let joiningOlderFetch = InvalidationMutation(rawValue: 1 << 11)
    /// A node that starts opens a cluster of its own where nobody answers.
    package static let openingBySilence = InvalidationMutation(rawValue: 1 << 12)
    /// A node that goes is forgotten while it answers clients.
    package static let leavingBeforeClosing = InvalidationMutation(rawValue: 1 << 13)
    /// Who was replaced by another of its name stays counted.
    package static let namesakesStay = InvalidationMutation(rawValue: 1 << 14)
    /// Whoever follows a recovered count goes on to trust what it holds.
    package static let recoveryTrustsAll = InvalidationMutation(rawValue: 1 << 15)
    /// A directory that is an older copy is taken for the member's.
    package static let copyTaken = InvalidationMutation(rawValue: 1 << 16)
    /// The operator has a node forget a majority, and what only that knew is forgotten with it.
    package static let majorityForgotten = InvalidationMutation(rawValue: 1 << 17)
    /// When records need not be kept any more, what they have invalidated goes with them.
    package static let marksGoneWithRecords = InvalidationMutation(rawValue: 1 << 18)
    /// A mark goes whose URL nobody holds, though it is being fetched.
    package static let markGoneDuringFetch = InvalidationMutation(rawValue: 1 << 19)
    /// A mark goes whose URL memory does not hold, though the disk does.
    package static let markGoneBesideDisk = InvalidationMutation(rawValue: 1 << 20)

    /// An answer opens the fence though what it names is not applied yet.
    package static let answerTrustedUnapplied = InvalidationMutation(rawValue: 1 << 21)

    /// What of it the nodes' own rooms do wrong.
    var flaws: Fence.Flaws {
        let pairs: [(InvalidationMutation, Fence.Flaws)] = [
            (.contactTimedFromAnswer, .contactTimedFromAnswer),
            (.namesakesStay, .namesakesStay), (.recoveryTrustsAll, .recoveryTrustsAll),
            (.majorityForgotten, .majorityForgotten),
            (.answerTrustedUnapplied, .answerTrustedUnapplied),
        ]
        return Fence.Flaws(pairs.filter { contains($0.0) }.map(\.1))
    }

    package static let all: [(name: String, mutation: InvalidationMutation)] = [
        ("number reused after a crash", .numberReused),
        ("forgetting while fenced", .forgettingWhileFenced),
        ("catch-up from one member", .catchUpFromOneMember),
        ("contact timed from the answer", .contactTimedFromAnswer),
        ("re-stamp on re-insertion", .restampOnReinsertion),
        ("stamp before boot epoch", .stampBeforeBootEpoch),
        ("mark dropped at confirmation", .markDroppedAtConfirmation),
        ("receipt without joiners", .receiptWithoutJoiners),
        ("a 304 begun before a purge freshens", .lateValidationFreshens),
        ("an answer trusted before it is applied", .answerTrustedUnapplied),
        ("fence as a timer", .fenceAsTimer),
        ("unknown purge skipped", .unknownPurgeSkipped),
        ("joining a fetch begun before the purge", .joiningOlderFetch),
        ("a cluster opened by silence", .openingBySilence),
        ("forgotten before its doors are closed", .leavingBeforeClosing),
        ("who was replaced stays counted", .namesakesStay),
        ("a recovered count with what was held before", .recoveryTrustsAll),
        ("a majority forgotten by order", .majorityForgotten),
        ("an older copy of a directory taken for the member's", .copyTaken),
        ("marks gone with their records", .marksGoneWithRecords),
        ("a mark gone while its URL is fetched", .markGoneDuringFetch),
        ("a mark gone while the disk has its URL", .markGoneBesideDisk),
    ]
}

/// What a campaign has to come to before its silence says anything.
package enum InvalidationClass: Int, CaseIterable, Hashable, Sendable {
    /// A purge of what is asked for, between question and answer, by the way the bytes come.
    case duringFetch, duringGet, duringProbe, duringOffer, duringDrain, duringHotCopy
    case duringRevalidation, duringPromotion, duringReinsertion, duringRecovery
    case joinerDuringReceipt
    case crashBetweenApplyAndSync
    /// An answer that may not be kept or shared came, and one that stood in for an origin that
    /// fails.
    case unshareable, staleIfError
    /// With a majority of the counted members away.
    case restartOfOldDisk
    case reinsertionOfPurged
    /// A mark was let go of, for nothing could be held that it covers.
    case markGone
    case longPartition
    case rivalForgetting
    case threeToSeven
    case formedFromNothing
    case leftInOrder, brokenOffAtLeave
    case replaced, restoredCopy
    /// By the operator: whom only he knows to be gone, and a majority that is lost.
    case forgottenByOrder, recovered
}
