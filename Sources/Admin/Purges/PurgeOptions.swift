package import Ground
package import HTTPRules
import Telemetry

/// How long a client waits for the answer to its purge, as the query says it, or the fields of a
/// PURGE.
package struct PurgeOptions: Hashable, Sendable {
    /// Nil if nothing says it.
    package internal(set) var wait: PurgeAcknowledgement?
    /// Nil if nothing says it.
    package internal(set) var timeout: Interval?

    /// Nothing is said.
    package init() {}

    /// `wait=all&timeout=1s`; `timeout_ms=1000` means the same.
    package init(_ query: AdminQuery) throws(PurgeError) {
        wait = query["wait"].flatMap { PurgeAcknowledgement(rawValue: $0) }
        timeout = query["timeout"].flatMap { DurationText.parse($0) }
        guard let milliseconds = query.number("timeout_ms") else { return }
        guard timeout == nil else { throw .duplicateParameter("timeout") }
        timeout = .milliseconds(milliseconds)
    }

    /// The parameters of a query that say it.
    static let parameters: [AdminParameter] = [
        .query(
            "wait", .choice(PurgeAcknowledgement.allCases.map(\.rawValue)), "What is waited for"),
        .query("timeout", .duration(PurgeRequest.timeoutRange), "For how long at most"),
        .query(
            "timeout_ms", .number(0...PurgeRequest.timeoutRange.upperBound.milliseconds),
            "The same in milliseconds"),
    ]

    /// What is waited for, and for how long at most, where the body of the same request says
    /// `body`.
    package func resolved(
        with body: PurgeRequest
    ) throws(PurgeError) -> (wait: PurgeAcknowledgement, timeout: Interval) {
        if wait != nil, body.wait != nil { throw .duplicateParameter("wait") }
        if timeout != nil, body.timeout != nil { throw .duplicateParameter("timeout") }
        var joined = self
        joined.wait = wait ?? body.wait
        joined.timeout = timeout ?? body.timeout
        return joined.resolved
    }

    /// The same where nothing else is said.
    package var resolved: (wait: PurgeAcknowledgement, timeout: Interval) {
        (wait ?? .standard, timeout ?? PurgeRequest.timeoutDefault)
    }

    /// A duration that a client may wait; nil for any other text.
    static func timeout(_ text: String) -> Interval? {
        DurationText.parse(text).flatMap { PurgeRequest.timeoutRange.contains($0) ? $0 : nil }
    }

    static let timeoutAllowed =
        "0s to \(DurationText.format(PurgeRequest.timeoutRange.upperBound)), with ms, s or m"
}

extension PurgeOptions {
    /// What a request with the method PURGE says, whose field lines lie in `bytes`:
    /// `Nuthatch-Purge-Wait: all` and `Nuthatch-Purge-Timeout: 1s`.
    package init(
        _ lines: [FieldLine], in bytes: Span<UInt8>
    ) throws(PurgeError) {
        self.init()
        for line in lines {
            let text = String(decoding: bytes.copy(line.value.range), as: UTF8.self)
            if bytes.matchesIgnoringCase(Self.waitField, at: line.name.range) {
                guard wait == nil, let read = PurgeAcknowledgement(rawValue: text) else {
                    throw .invalidField(Self.waitField, allowed: PurgeAcknowledgement.allowed)
                }
                wait = read
            } else if bytes.matchesIgnoringCase(Self.timeoutField, at: line.name.range) {
                guard timeout == nil, let read = Self.timeout(text) else {
                    throw .invalidField(Self.timeoutField, allowed: Self.timeoutAllowed)
                }
                timeout = read
            }
        }
    }

    private static let waitField = "nuthatch-purge-wait"
    private static let timeoutField = "nuthatch-purge-timeout"
}
