import Ground
import Synchronization
package import Tiers

/// What a node's disk has of its marks.
extension MarkBook {
    /// By which a disk hashes that has no marks yet.
    var key: MarkKey { state.withLock { $0.table.key } }

    /// A disk's log was opened, for the first time or anew: stamps are of `epoch` from now on, and
    /// `table` has the marks that it holds; there is room for `capacity`.
    ///
    /// Invalidations from a time without a log cover everything in this log. Invalidations that a
    /// lost log held, and this one does not, cover everything in memory.
    package func open(epoch: UInt64, table: MarkTable, capacity: Int) {
        state.withLock { state in
            precondition(epoch > state.stamp.epoch, "epoch \(epoch) after \(state.stamp.epoch)")
            let (former, last) = (state.table, state.stamp)
            state.table = table
            // Of when its soft marks were applied nothing is known.
            state.unknownBefore = max(state.unknownBefore, table.softForAll)
            state.marksMax = max(state.marksMax, capacity + Self.marksMax)
            state.stamp.epoch = epoch
            state.unwritten.begin(epoch: epoch)
            for mark in state.unwritten.marks { state.table.apply(mark) }
            if state.wasWritten, !state.table.holds(former) {
                state.cover(upTo: last, former.count)
            }
            state.table.join(former)
            changed()
        }
    }

    /// A start has found that something is missing, and writes this mark itself.
    func add(_ mark: DiskMark) {
        state.withLock { state in
            state.table.apply(mark)
            if mark.isSoft { state.unknownBefore = max(state.unknownBefore, mark.stamp) }
            changed()
        }
    }

    /// What the disk has to write before it may say that it has all marks up to now.
    func takeUnwritten() -> [DiskMark] {
        state.withLock { state in
            if !state.unwritten.marks.isEmpty { state.wasWritten = true }
            return state.unwritten.takeAll()
        }
    }

    /// A mark that no disk has is older than a request that began at `stamp`.
    func lacksMarks(before stamp: Stamp) -> Bool {
        state.withLock { state in state.unwritten.first.map { $0 <= stamp } ?? false }
    }

    /// The disk was given all marks up to this stamp: what bears it promises no more.
    var writtenStamp: Stamp {
        state.withLock { state in
            guard var stamp = state.unwritten.first else { return state.stamp }
            stamp.count -= 1
            return stamp
        }
    }

    /// The disk has a new generation, which holds `marks` in the place of all that it was given.
    func replace(with marks: [StoredMark], _ rewriting: MarksLog.Rewriting) {
        var table = MarkTable(marks, key: key)
        // What is left behind is let go of outside of the lock.
        state.withLock { state in
            for mark in state.unwritten.marks { table.apply(mark) }
            swap(&state.table, &table)
            if let last = rewriting.droppedTo { state.noteFold(last, 0) }
            // Nothing that is held is covered anew by the mark for those that were dropped.
            guard let last = rewriting.foldedTo else { return }
            state.noteFold(last, rewriting.foldedCount)
            changed()
        }
    }
}

extension MarkBook.State {
    /// Puts one mark, soft and for everything, in the place of `count` up to `last` that a lost log
    /// was given: they are known by their hashes alone, and the table forgets them when it is made
    /// anew of what its log holds.
    fileprivate mutating func cover(upTo last: Stamp, _ count: Int) {
        let mark = DiskMark(.everything, isSoft: true, stamp: last)
        table.apply(mark)
        unwritten.append(mark)
        noteFold(last, count)
    }
}
