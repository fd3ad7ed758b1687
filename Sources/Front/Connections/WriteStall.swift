import Ground

/// Detection of a client that stops reading its response.
struct WriteStall {
    /// Bytes queued when `deadline` was set; `nil` if the socket has accepted everything.
    private var queuedBytes: Int?
    /// Instant by which the client must have read something.
    private var deadline = Instant.distantFuture

    /// True while bytes wait for the socket.
    var isActive: Bool { queuedBytes != nil }

    /// Starts the detection with `bytes` queued.
    mutating func begin(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) {
        queuedBytes = bytes
        deadline = now + settings.sendTimeout
    }

    /// Stops the detection, because the socket has accepted everything.
    mutating func end() {
        queuedBytes = nil
    }

    /// Returns false if the client has read nothing for `sendTimeout`; `bytes` are queued now.
    mutating func checkProgress(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) -> Bool {
        if bytes != queuedBytes { begin(bytes, now, settings) }
        return now < deadline
    }

    /// Shifts the deadline to the `sendTimeout` of new settings.
    mutating func reconfigure(_ settings: NodeSettings, after old: NodeSettings) {
        guard isActive else { return }
        deadline.shift(from: old.sendTimeout, to: settings.sendTimeout)
    }
}

extension Instant {
    /// Moves a deadline set with time limit `old` to where the limit `new` would have put it.
    mutating func shift(from old: Interval, to new: Interval) {
        self = self + Interval(nanoseconds: new.nanoseconds - old.nanoseconds)
    }
}
