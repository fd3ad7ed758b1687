import Ground

/// Whether a client that does not take everything at once still takes something.
struct Congestion {
    /// Bytes that waited for the socket when `deadline` was set; nil if the socket has taken
    /// everything.
    private var waitingBytes: Int?
    /// The client must have taken something by this instant.
    private var deadline = Instant.distantFuture

    var isOn: Bool { waitingBytes != nil }

    /// The socket holds `bytes` that the client does not take.
    mutating func begin(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) {
        waitingBytes = bytes
        deadline = now + settings.sendTimeout
    }

    mutating func end() {
        waitingBytes = nil
    }

    /// False if the client has taken nothing for as long as it may; `bytes` wait now.
    mutating func takesSomething(_ bytes: Int, _ now: Instant, _ settings: NodeSettings) -> Bool {
        if bytes != waitingBytes { begin(bytes, now, settings) }
        return now < deadline
    }

    mutating func adopt(_ settings: NodeSettings, after old: NodeSettings) {
        guard isOn else { return }
        deadline.move(from: old.sendTimeout, to: settings.sendTimeout)
    }
}

extension Instant {
    /// A deadline that was set with the time limit `old` is as if it had been set with `new`.
    mutating func move(from old: Interval, to new: Interval) {
        self = self + Interval(nanoseconds: new.nanoseconds - old.nanoseconds)
    }
}
