package import Ground
import HTTPRules
package import Tiers

// MARK: - Timers

extension Fetch {
    /// Applies the time limits on readers and on the fetch; called at regular intervals.
    ///
    /// - Parameters:
    ///   - elapsed: the time since the last call.
    ///   - isContended: true if other requests wait for a connection to the origin.
    ///   - effects: receives the effects to perform.
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

    /// Aborts readers that hold back the origin and read almost nothing while other requests wait
    /// for it.
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

    /// Charges `elapsed` to a reader that is the slowest, or has not moved since the last call and
    /// so will soon be the slowest; never to one that has read everything received.
    mutating func addBlockingTime(_ index: Int, _ elapsed: Interval) {
        let position = readers[index].position
        let isSlow = position == retainedOffset || position == readers[index].lastPosition
        readers[index].lastPosition = position
        guard isSlow, position < receivedBytes else { return }
        readers[index].blockingTime = readers[index].blockingTime + elapsed
    }

    /// True if a reader has read everything received, and so is held up.
    private var hasCaughtUpReader: Bool {
        readers.contains { $0.state == .reading && $0.position == receivedBytes }
    }
}

// MARK: - Rules

extension Fetch {
    /// Returns true if a request has the same values of the fields `names` as the one sent to the
    /// origin, or if the response depends on none.
    func matches(_ other: RequestFields?, on names: FieldNames) -> Bool {
        guard let request, !names.isEmpty else { return true }
        return other.map { $0.matches(with: request, on: names) } ?? false
    }

    /// Returns true if the response may be delivered to a reader: always to the first one, unless
    /// it is unusable; to others if it is shared, valid and selected by their fields.
    func canServe(_ reader: Reader) -> Bool {
        guard let disposition else { return true }
        if disposition.validity == .unusable { return false }
        return reader.isFirst
            || (disposition.isShared && disposition.validity == .valid
                && matches(reader.request, on: disposition.nominated))
    }

    /// Aborts a relaying fetch when its last reader has left, because its body is not kept.
    mutating func abortWithoutReaders(_ effects: inout [LookupEffect]) {
        guard phase == .relaying, !readers.contains(where: { $0.state == .reading }) else {
            return
        }
        phase = .failed
        effects.append(.abort)
        effects.append(.wakeReaders)
    }

    /// Limits how long, and for how many bytes, the fetch continues without readers.
    package mutating func limitUnread(time: Interval, bytes: UInt64) {
        unreadMax = (time, bytes)
    }

    /// Removes the limit, because the rest of the body is charged to a client.
    package mutating func removeUnreadLimit() {
        unreadMax = nil
    }

    /// True if the fetch continues only within a limit once it has no readers.
    package var isUnreadLimited: Bool { unreadMax != nil }

    /// Counts time and bytes without readers and aborts the fetch at the limit.
    ///
    /// It continues up to the limit because readers may come back and its end may be near.
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

    /// Counts the readers at ``retainedOffset`` anew.
    mutating func countFloor() {
        floorReaderCount = readers.count { $0.state == .reading && $0.position == retainedOffset }
    }

    /// Releases the bytes that no reader needs, once no reader is left at ``retainedOffset``.
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

    /// Pauses reading from the origin when the window is full, and resumes when it has space.
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
    /// Evaluates the marks that apply to a response at this moment (Design, "Versions and marks").
    ///
    /// - Parameters:
    ///   - effect: the effect of the marks on it, by the invalidation version at the start of its
    ///     request to the origin, or to a peer that did not reply that it lags; `nil` if none
    ///     applies.
    ///   - isExcluded: true if its request started too early to be trusted while the fence is
    ///     closed.
    ///   - isShared: false if the response is for one client only. It is then never unusable,
    ///     because that client receives it as it came.
    package init(of effect: InvalidationMark.Effect?, isExcluded: Bool, isShared: Bool) {
        switch (effect, isShared) {
        case (nil, _): self = isShared && isExcluded ? .unusable : .valid
        case (_, false): self = .mustRevalidate
        case (.purged, true): self = .unusable
        case (.stale, true): self = isExcluded ? .unusable : .mustRevalidate
        }
    }
}
