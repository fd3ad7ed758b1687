package import Ground

extension InvalidationLog {
    /// The limits of a log and its pace.
    package struct Settings: Hashable, Sendable {
        /// So many records are kept however old they are.
        package var recordsMin = 1_000_000
        /// Records that are younger are kept however many they are.
        package var ageMin = Interval.seconds(86_400)
        /// The most bytes of records, with 64 for each, that are kept whatever the two above say.
        package var bytesMax = 256 << 20
        /// The most streams; beyond them those of dead processes are retired early.
        package var streamsMax = 1_024
        /// The most retired streams that are remembered; more than ``streamsMax``.
        package var retiredMax = 4_096
        /// The most bytes that may wait to be synced before nothing more is taken.
        package var unsyncedBytesMax = 64 << 20
        /// And beyond those what this node alone has invalidated, before everything is soft in its
        /// place.
        package var localBytesMax = 16 << 20
        /// What is missing is left so long to a push that may be on its way.
        package var askDelay = Interval.milliseconds(20)
        /// Who has not answered after so long is not waited for.
        package var askPatience = Interval.seconds(1)
        /// Ranges that one member is asked for at once.
        package var rangesMax = 64
        /// Between two confirmations to all members, where not very much is to be told; who has
        /// missed a push learns of it by them.
        package var confirmInterval = Interval.milliseconds(400)
        /// So many members are told at once what of theirs is synced; with each one more all are
        /// told ``confirmDelay`` later, of everything until then.
        package var promptMembersMax = 8
        package var confirmDelay = Interval.milliseconds(1)
        /// Between the beginnings of two batches that are written.
        ///
        /// What comes meanwhile is synced with the second; what comes alone does not wait.
        package var batchInterval = Interval.milliseconds(2)
        /// After a write that failed.
        package var writeDelay = Interval.seconds(1)
        /// What ``Receipt/boundedAt`` adds to ``Receipt/majorityAt``.
        package var fence = Interval.seconds(10)
        /// A member that was met here and is away for so long is nobody's that receipts wait for.
        package var forgetAfter = Interval.seconds(3_600)

        package init() {}

        /// How long what is synced waits for more, for so many others: what that costs a receipt.
        func confirmDelay(_ others: Int) -> Interval {
            let surplus = max(0, others - promptMembersMax)
            return Interval(nanoseconds: confirmDelay.nanoseconds * Int64(surplus))
        }

        /// Until all are told again, after so many positions times so many members: however many
        /// there are of both, each tells some 6,000 positions a second at most.
        func confirmInterval(_ told: Int) -> Interval {
            Interval(nanoseconds: confirmInterval.nanoseconds * Int64(max(1, told / 2_500)))
        }

        /// Positions that are taken of one peer at once.
        var positionsMax: Int { streamsMax + retiredMax }
    }
}
