package import Ground

/// What an ``InvalidationLog`` waits for, so that a sync, a frame and a step serve many.
package struct LogDelays: Hashable, Sendable {
    /// What is missing is left so long to a push that may be on its way.
    package var repairRequest = Interval.milliseconds(20)
    /// Who has not answered after so long is not waited for.
    package var repairTimeout = Interval.seconds(1)
    /// Between two confirmations to all members, by which who has missed a push learns of it: where
    /// not very much is to be told, and at most.
    package var confirmAll = Interval.milliseconds(400)
    package var confirmAllMax = Interval.seconds(10)
    /// So many members are told at once what of theirs is synced; with each one more all are told
    /// ``confirm`` later, of everything until then.
    package var immediateMembersMax = 8
    package var confirm = Interval.milliseconds(1)
    /// Between the beginnings of two batches that are written, for each record that the first one
    /// has, and at most.
    ///
    /// What comes meanwhile is synced with the second; what comes alone does not wait.
    package var batch = Interval.milliseconds(2)
    package var batchMax = Interval.milliseconds(5)
    /// After a write that failed.
    package var failedWrite = Interval.seconds(1)

    package init() {}

    /// How long what is synced waits for more, for so many others: what that costs a receipt.
    func confirm(others count: Int) -> Interval {
        Interval(nanoseconds: confirm.nanoseconds * Int64(max(0, count - immediateMembersMax)))
    }

    /// Until another batch is begun, after one of so many records: of what comes 500 times a second
    /// or more each batch waits for the most.
    func batch(after count: Int) -> Interval {
        min(batchMax, Interval(nanoseconds: batch.nanoseconds * Int64(count)))
    }

    /// Until all are told again, after so many positions times so many members: as long as it takes
    /// at 6,250 positions a second.
    func confirmAll(after count: Int) -> Interval {
        let span = Interval(nanoseconds: confirmAll.nanoseconds * Int64(max(2_500, count)) / 2_500)
        return min(span, max(confirmAll, confirmAllMax))
    }
}
