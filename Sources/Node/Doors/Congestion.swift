import Ground

/// Whether a client that does not take everything at once still takes something.
struct WriteStall {
    /// Bytes that waited for the socket when `deadline` was set; nil if the socket has taken
    /// everything.
    private var queuedBytes: Int?
    /// The client must have taken something by this instant.
    private var deadline = Instant.distantFuture

    var isActive: Bool { queuedBytes != nil }

    /// The socket holds `bytes` that the client does not take.
    mutating func begin(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) {
        queuedBytes = bytes
        deadline = now + settings.sendTimeout
    }

    mutating func end() {
        queuedBytes = nil
    }

    /// False if the client has taken nothing for as long as it may; `bytes` wait now.
    mutating func checkProgress(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) -> Bool {
        if bytes != queuedBytes { begin(bytes, now, settings) }
        return now < deadline
    }

    mutating func reconfigure(_ settings: NodeSettings, after old: NodeSettings) {
        guard isActive else { return }
        deadline.shift(from: old.sendTimeout, to: settings.sendTimeout)
    }
}

extension Instant {
    /// A deadline that was set with the time limit `old` is as if it had been set with `new`.
    mutating func shift(from old: Interval, to new: Interval) {
        self = self + Interval(nanoseconds: new.nanoseconds - old.nanoseconds)
    }
}
