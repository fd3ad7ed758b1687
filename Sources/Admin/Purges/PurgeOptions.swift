package import Ground
package import HTTPRules
import Telemetry

/// The acknowledgement and the timeout that a purge asks for in its query, or in the fields of a
/// PURGE.
package struct PurgeOptions: Hashable, Sendable {
    /// The acknowledgement to wait for; `nil` if not given.
    package internal(set) var wait: PurgeAcknowledgement?
    /// The maximum wait; `nil` if not given.
    package internal(set) var timeout: Interval?

    /// Creates options with nothing given.
    package init() {}

    /// Reads the options of a query: `wait=all&timeout=1s`, or `timeout_ms=1000`.
    package init(_ query: AdminQuery) throws(PurgeError) {
        wait = query["wait"].flatMap { PurgeAcknowledgement(rawValue: $0) }
        timeout = query["timeout"].flatMap { DurationText.parse($0) }
        guard let milliseconds = query.number("timeout_ms") else { return }
        guard timeout == nil else { throw .duplicateParameter("timeout") }
        timeout = .milliseconds(milliseconds)
    }

    /// The query parameters for the options.
    static let parameters: [AdminParameter] = [
        .query(
            "wait", .choice(PurgeAcknowledgement.allCases.map(\.rawValue)),
            "The acknowledgement to wait for"),
        .query("timeout", .duration(PurgeRequest.timeoutRange), "The maximum wait"),
        .query(
            "timeout_ms", .number(0...PurgeRequest.timeoutRange.upperBound.milliseconds),
            "The maximum wait in milliseconds"),
    ]

    /// Combines the options with those of the same request's body, and applies the defaults.
    ///
    /// - Throws: ``PurgeError/duplicateParameter(_:)`` if both give the same option.
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

    /// The options, with defaults for missing ones.
    package var resolved: (wait: PurgeAcknowledgement, timeout: Interval) {
        (wait ?? .standard, timeout ?? PurgeRequest.timeoutDefault)
    }

    /// Returns the duration that `text` gives; `nil` if it is malformed or out of range.
    static func timeout(_ text: String) -> Interval? {
        DurationText.parse(text).flatMap { PurgeRequest.timeoutRange.contains($0) ? $0 : nil }
    }

    static let timeoutAllowed =
        "0s to \(DurationText.format(PurgeRequest.timeoutRange.upperBound)), with ms, s or m"
}

extension PurgeOptions {
    /// Reads the options of a PURGE request from its field lines in `bytes`.
    ///
    /// The fields are `Nuthatch-Purge-Wait: all` and `Nuthatch-Purge-Timeout: 1s`.
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
