package import Ground
import HTTPRules

// MARK: - Events of the clock

extension Fill {
    /// `elapsed` has gone by since the last tick; `isContended` if others wait for the origin.
    package mutating func ticked(
        _ elapsed: Interval, isContended: Bool = false, effects: inout [LookupEffect]
    ) {
        goOnUnread(elapsed, 0, &effects)
        cutIdle(elapsed, isContended, &effects)
        guard phase == .passing, isPaused, someoneHasTakenEverything else { return }
        var cuts = false
        for index in readers.indices where readers[index].state == .following {
            blame(index, elapsed)
            if readers[index].heldUp >= patience {
                readers[index].state = .cut
                cuts = true
            }
        }
        guard cuts else { return }
        effects.append(.wakeReaders)
        atFloor = 0
        raiseFloor(&effects)
        holdBackIfAhead(&effects)
    }

    /// Readers that keep the origin waiting have to take something of what there is while others
    /// wait for it.
    private mutating func cutIdle(
        _ elapsed: Interval, _ isContended: Bool, _ effects: inout [LookupEffect]
    ) {
        guard phase == .passing, isContended else { return contendedTime = .zero }
        if contendedTime == .zero {
            for index in readers.indices {
                readers[index].contendedPosition = readers[index].position
            }
        }
        contendedTime = contendedTime + elapsed
        guard contendedTime >= contendedPatience else { return }
        contendedTime = .zero
        var cuts = false
        for index in readers.indices where readers[index].state == .following {
            let taken = readers[index].position - readers[index].contendedPosition
            guard taken < Self.contendedBytesMin, readers[index].position < receivedBytes else {
                continue
            }
            readers[index].state = .cut
            cuts = true
        }
        guard cuts else { return }
        effects.append(.wakeReaders)
        atFloor = 0
        abandonIfUnwanted(&effects)
        raiseFloor(&effects)
        holdBackIfAhead(&effects)
    }

    /// The slowest holds the others up, and whoever has not moved will be the slowest soon.
    mutating func blame(_ index: Int, _ elapsed: Interval) {
        let position = readers[index].position
        let isSlow = position == heldFrom || position == readers[index].lastPosition
        readers[index].lastPosition = position
        guard isSlow, position < receivedBytes else { return }
        readers[index].heldUp = readers[index].heldUp + elapsed
    }

    private var someoneHasTakenEverything: Bool {
        readers.contains { $0.state == .following && $0.position == receivedBytes }
    }
}

// MARK: - Rules

extension Fill {
    func agrees(_ other: RequestLines?, on names: FieldNames) -> Bool {
        guard let request, !names.isEmpty else { return true }
        return other.map { $0.agrees(with: request, on: names) } ?? false
    }

    func mayServe(_ reader: Reader) -> Bool {
        guard let answer else { return true }
        if answer.standing == .void { return false }
        return reader.isFirst
            || (answer.isShared && answer.standing == .current
                && agrees(reader.request, on: answer.nominated))
    }

    /// A fetch whose bytes are not kept is for its readers alone.
    mutating func abandonIfUnwanted(_ effects: inout [LookupEffect]) {
        guard phase == .passing, !readers.contains(where: { $0.state == .following }) else {
            return
        }
        phase = .failed
        effects.append(.breakOff)
        effects.append(.wakeReaders)
    }

    /// A fetch that nobody waits for any more is given up after so much time, or so many bytes.
    package mutating func limitUnread(time: Interval, bytes: UInt64) {
        unreadMax = (time, bytes)
    }

    /// What was said of that holds no more: somebody answers for the rest.
    package mutating func unlimitUnread() {
        unreadMax = nil
    }

    /// It goes on for a little only when nobody waits for it any more.
    package var isUnreadLimited: Bool { unreadMax != nil }

    /// Without readers it goes on for a little: they may come back, and its end may be near.
    mutating func goOnUnread(
        _ elapsed: Interval, _ bytes: UInt64, _ effects: inout [LookupEffect]
    ) {
        guard let unreadMax, readerCount == 0, readersEver > 0,
            phase == .asking || phase == .storing
        else { return }
        unread = (unread.time + elapsed, unread.bytes + bytes)
        guard unread.time >= unreadMax.time || unread.bytes > unreadMax.bytes else { return }
        phase = .failed
        effects.append(.breakOff)
    }

    mutating func countFloor() {
        atFloor = readers.count { $0.state == .following && $0.position == heldFrom }
    }

    mutating func raiseFloor(_ effects: inout [LookupEffect]) {
        guard atFloor <= 0 else { return }
        var lowest = UInt64.max
        for reader in readers where reader.state == .following {
            lowest = min(lowest, reader.position)
        }
        guard lowest != .max else { return }
        if lowest > heldFrom {
            heldFrom = lowest
            effects.append(.dropHead)
        }
        countFloor()
    }

    /// Stops the origin when a window is full, starts it again when there is space.
    mutating func holdBackIfAhead(_ effects: inout [LookupEffect]) {
        guard phase == .passing else { return }
        let isAhead = receivedBytes - heldFrom >= windowBytes
        if isAhead && !isPaused {
            isPaused = true
            effects.append(.pace)
        } else if !isAhead && isPaused {
            isPaused = false
            effects.append(.pace)
        }
    }
}
