package import Ground
import HTTPRules
package import Tiers

// MARK: - Events of the clock

extension Fetch {
    /// `elapsed` has gone by since the last tick; `isContended` if others wait for the origin.
    package mutating func ticked(
        _ elapsed: Interval, isContended: Bool = false, effects: inout [LookupEffect]
    ) {
        applyUnreadLimit(elapsed, 0, &effects)
        abortStalledReaders(elapsed, isContended, &effects)
        guard phase == .relaying, isPaused, hasCaughtUpReader else { return }
        var cuts = false
        for index in readers.indices where readers[index].state == .reading {
            addBlockingTime(index, elapsed)
            if readers[index].blockingTime >= blockingTimeMax {
                readers[index].state = .aborted
                cuts = true
            }
        }
        guard cuts else { return }
        effects.append(.wakeReaders)
        floorReaderCount = 0
        raiseFloor(&effects)
        updateBackpressure(&effects)
    }

    /// Readers that keep the origin waiting have to take something of what there is while others
    /// wait for it.
    private mutating func abortStalledReaders(
        _ elapsed: Interval, _ isContended: Bool, _ effects: inout [LookupEffect]
    ) {
        guard phase == .relaying, isContended else { return contendedTime = .zero }
        if contendedTime == .zero {
            for index in readers.indices {
                readers[index].contendedPosition = readers[index].position
            }
        }
        contendedTime = contendedTime + elapsed
        guard contendedTime >= contendedStallTimeMax else { return }
        contendedTime = .zero
        var cuts = false
        for index in readers.indices where readers[index].state == .reading {
            let taken = readers[index].position - readers[index].contendedPosition
            guard taken < Self.contendedBytesMin, readers[index].position < receivedBytes else {
                continue
            }
            readers[index].state = .aborted
            cuts = true
        }
        guard cuts else { return }
        effects.append(.wakeReaders)
        floorReaderCount = 0
        abortWithoutReaders(&effects)
        raiseFloor(&effects)
        updateBackpressure(&effects)
    }

    /// The slowest holds the others up, and whoever has not moved will be the slowest soon.
    mutating func addBlockingTime(_ index: Int, _ elapsed: Interval) {
        let position = readers[index].position
        let isSlow = position == retainedOffset || position == readers[index].lastPosition
        readers[index].lastPosition = position
        guard isSlow, position < receivedBytes else { return }
        readers[index].blockingTime = readers[index].blockingTime + elapsed
    }

    private var hasCaughtUpReader: Bool {
        readers.contains { $0.state == .reading && $0.position == receivedBytes }
    }
}

// MARK: - Rules

extension Fetch {
    func matches(_ other: RequestFields?, on names: FieldNames) -> Bool {
        guard let request, !names.isEmpty else { return true }
        return other.map { $0.matches(with: request, on: names) } ?? false
    }

    func canServe(_ reader: Reader) -> Bool {
        guard let disposition else { return true }
        if disposition.validity == .unusable { return false }
        return reader.isFirst
            || (disposition.isShared && disposition.validity == .valid
                && matches(reader.request, on: disposition.nominated))
    }

    /// A fetch whose bytes are not kept is for its readers alone.
    mutating func abortWithoutReaders(_ effects: inout [LookupEffect]) {
        guard phase == .relaying, !readers.contains(where: { $0.state == .reading }) else {
            return
        }
        phase = .failed
        effects.append(.abort)
        effects.append(.wakeReaders)
    }

    /// A fetch that nobody waits for any more is given up after so much time, or so many bytes.
    package mutating func limitUnread(time: Interval, bytes: UInt64) {
        unreadMax = (time, bytes)
    }

    /// What was said of that holds no more: somebody answers for the rest.
    package mutating func removeUnreadLimit() {
        unreadMax = nil
    }

    /// It goes on for a little only when nobody waits for it any more.
    package var isUnreadLimited: Bool { unreadMax != nil }

    /// Without readers it goes on for a little: they may come back, and its end may be near.
    mutating func applyUnreadLimit(
        _ elapsed: Interval, _ bytes: UInt64, _ effects: inout [LookupEffect]
    ) {
        guard let unreadMax, readerCount == 0, totalReaderCount > 0,
            phase == .awaitingHead || phase == .storing
        else { return }
        unread = (unread.time + elapsed, unread.bytes + bytes)
        guard unread.time >= unreadMax.time || unread.bytes > unreadMax.bytes else { return }
        phase = .failed
        effects.append(.abort)
    }

    mutating func countFloor() {
        floorReaderCount = readers.count { $0.state == .reading && $0.position == retainedOffset }
    }

    mutating func raiseFloor(_ effects: inout [LookupEffect]) {
        guard floorReaderCount <= 0 else { return }
        var lowest = UInt64.max
        for reader in readers where reader.state == .reading {
            lowest = min(lowest, reader.position)
        }
        guard lowest != .max else { return }
        if lowest > retainedOffset {
            retainedOffset = lowest
            effects.append(.releasePrefix)
        }
        countFloor()
    }

    /// Stops the origin when a window is full, starts it again when there is space.
    mutating func updateBackpressure(_ effects: inout [LookupEffect]) {
        guard phase == .relaying else { return }
        let isAhead = receivedBytes - retainedOffset >= windowBytes
        if isAhead && !isPaused {
            isPaused = true
            effects.append(.updateFlow)
        } else if !isAhead && isPaused {
            isPaused = false
            effects.append(.updateFlow)
        }
    }
}

extension Fetch.Validity {
    /// What an answer is good for at this moment (DESIGN.md §7 "Stamps and marks").
    ///
    /// `effect` is what the marks say of it by the stamp of the instant at which its request began,
    /// to the origin or to a peer that was not *behind*. It `isExcluded` if its request is older
    /// than a closed fence allows. What is not shared is nobody's stored answer but one client's:
    /// that one is given it as it came.
    package init(of effect: InvalidationMark.Effect?, isExcluded: Bool, isShared: Bool) {
        switch (effect, isShared) {
        case (nil, _): self = isShared && isExcluded ? .unusable : .valid
        case (_, false): self = .mustRevalidate
        case (.purged, true): self = .unusable
        case (.stale, true): self = isExcluded ? .unusable : .mustRevalidate
        }
    }
}
