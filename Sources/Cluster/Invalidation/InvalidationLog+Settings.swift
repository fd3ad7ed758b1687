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
        /// Ranges that one member is asked for at once.
        package var rangesMax = 64
        package var delays = LogDelays()
        /// What ``ResponseTiming/boundedAt`` adds to ``ResponseTiming/majorityAt``.
        package var fenceDuration = Interval.seconds(10)
        /// Receipts do not wait for a member that never counted and has been away for so long.
        package var removeAfter = Interval.seconds(3_600)

        package init() {}

        /// Positions that are taken of one peer at once.
        var positionsMax: Int { streamsMax + retiredMax }
    }
}
