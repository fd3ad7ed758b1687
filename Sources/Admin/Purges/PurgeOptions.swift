package import Ground
import Telemetry

/// How long a client waits for the answer to its purge, as the query says it, or the fields of a
/// PURGE.
package struct PurgeOptions: Hashable, Sendable {
    /// Nil if nothing says it.
    package internal(set) var wait: PurgeWait?
    /// Nil if nothing says it.
    package internal(set) var timeout: Interval?

    /// Nothing is said.
    package init() {}

    /// `wait=all&timeout=1s`; `timeout_ms=1000` means the same.
    package init(_ query: AdminQuery) throws(PurgeFault) {
        wait = query["wait"].flatMap { PurgeWait(rawValue: $0) }
        timeout = query["timeout"].flatMap { DurationText.parse($0) }
        guard let milliseconds = query.number("timeout_ms") else { return }
        guard timeout == nil else { throw .saidTwice("timeout") }
        timeout = .milliseconds(milliseconds)
    }

    /// The parameters of a query that say it.
    static let parameters: [AdminParameter] = [
        .query("wait", .choice(PurgeWait.allCases.map(\.rawValue)), "What is waited for"),
        .query("timeout", .duration(PurgeRequest.timeouts), "For how long at most"),
        .query(
            "timeout_ms", .number(0...PurgeRequest.timeouts.upperBound.milliseconds),
            "The same in milliseconds"),
    ]

    /// What is waited for, and for how long at most, where the body of the same request says
    /// `body`.
    package func settled(
        with body: PurgeRequest
    ) throws(PurgeFault) -> (wait: PurgeWait, timeout: Interval) {
        if wait != nil, body.wait != nil { throw .saidTwice("wait") }
        if timeout != nil, body.timeout != nil { throw .saidTwice("timeout") }
        var joined = self
        joined.wait = wait ?? body.wait
        joined.timeout = timeout ?? body.timeout
        return joined.settled
    }

    /// The same where nothing else is said.
    package var settled: (wait: PurgeWait, timeout: Interval) {
        (wait ?? .usual, timeout ?? PurgeRequest.timeoutDefault)
    }

    /// A duration that a client may wait; nil for any other text.
    static func timeout(_ text: String) -> Interval? {
        DurationText.parse(text).flatMap { PurgeRequest.timeouts.contains($0) ? $0 : nil }
    }

    static let timeoutAllowed =
        "0s to \(DurationText.render(PurgeRequest.timeouts.upperBound)), with ms, s or m"
}
