package import Ground
import HTTPRules
import Telemetry

/// What is to be done about a request below `/admin/v1/purges`.
package enum PurgeRoute: Hashable, Sendable {
    /// Read the body, purge, and answer with the receipt.
    case issue(PurgeOptions)
    /// Answer with the receipt of this name.
    case receipt(ReceiptName)
    /// Answer with the receipt of the purge that has this id of a client's.
    case receiptOfID([UInt8])
    case refused(PurgeFault)
    /// 405 with this in Allow (RFC 9110 §15.5.6).
    case methodNotAllowed(allowed: String)

    package static let path = "/admin/v1/purges"

    /// The route of a request with `method` for `target`, in origin form; nil if it is for
    /// something else.
    package init?(method: String, target: String) {
        let parts = target.split(
            separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = parts[0]
        guard path.hasPrefix(Self.path) else { return nil }
        let rest = path.dropFirst(Self.path.count)
        guard rest.isEmpty || rest.first == "/" else { return nil }
        let isRead = method == "GET" || method == "HEAD"
        let query = parts.count > 1 ? parts[1] : ""
        do throws(PurgeFault) {
            if !rest.isEmpty {
                self =
                    isRead
                    ? try .receipt(Self.name(rest.dropFirst()))
                    : .methodNotAllowed(allowed: AdminRoute.pageMethods)
            } else if method == "POST" {
                self = .issue(try PurgeOptions(query: query))
            } else {
                self =
                    isRead
                    ? .receiptOfID(try PurgeOptions.id(query: query))
                    : .methodNotAllowed(allowed: "GET, HEAD, POST")
            }
        } catch {
            self = .refused(error)
        }
    }

    private static func name(_ text: Substring) throws(PurgeFault) -> ReceiptName {
        guard let name = ReceiptName(text) else { throw .receiptName }
        return name
    }
}

/// How long a client waits for the answer to its purge, as the query says it, or the fields of a
/// PURGE.
package struct PurgeOptions: Hashable, Sendable {
    /// Nil if nothing says it.
    package internal(set) var wait: PurgeWait?
    /// Nil if nothing says it.
    package internal(set) var timeout: Interval?

    private static let waitName = "wait"
    private static let timeoutNames = ["timeout", "timeout_ms"]

    /// Nothing is said.
    package init() {}

    /// Reads `wait=all&timeout=1s`; `timeout_ms=1000` means the same.
    package init(query: Substring) throws(PurgeFault) {
        for (name, value) in try Self.parameters(query) {
            if name == Self.waitName {
                guard wait == nil else { throw .saidTwice(name) }
                wait = PurgeWait(rawValue: value)
                guard wait != nil else { throw .parameter(name, allowed: PurgeWait.allowed) }
            } else if Self.timeoutNames.contains(name) {
                guard timeout == nil else { throw .saidTwice(name) }
                timeout = try Self.timeout(name, value)
            } else {
                throw .parameterUnknown(name, allowed: [Self.waitName] + Self.timeoutNames)
            }
        }
    }

    /// What is waited for, and for how long at most, where the body of the same request says
    /// `body`.
    package func settled(
        with body: PurgeRequest
    ) throws(PurgeFault) -> (wait: PurgeWait, timeout: Interval) {
        if wait != nil, body.wait != nil { throw .saidTwice(Self.waitName) }
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

    /// The id in the query of a question after a receipt, `id=…`.
    static func id(query: Substring) throws(PurgeFault) -> [UInt8] {
        var id: [UInt8]?
        for (name, value) in try parameters(query) {
            guard name == "id" else { throw .parameterUnknown(name, allowed: ["id"]) }
            guard id == nil else { throw .saidTwice(name) }
            id = Array(value.utf8)
        }
        guard let id, PurgeRequest.isID(id) else {
            throw .parameter(
                "id", allowed: "the id of a purge, 1 to \(PurgeRequest.idBytesMax) bytes")
        }
        return id
    }

    private static func timeout(_ name: String, _ value: String) throws(PurgeFault) -> Interval {
        let text = name == "timeout" ? value : value + "ms"
        guard let interval = timeout(text) else {
            let most = PurgeRequest.timeouts.upperBound.milliseconds
            throw .parameter(
                name, allowed: name == "timeout" ? timeoutAllowed : "0 to \(most)")
        }
        return interval
    }

    /// A duration that a client may wait; nil for any other text.
    static func timeout(_ text: String) -> Interval? {
        DurationText.parse(text).flatMap { PurgeRequest.timeouts.contains($0) ? $0 : nil }
    }

    static let timeoutAllowed =
        "0s to \(DurationText.render(PurgeRequest.timeouts.upperBound)), with ms, s or m"

    /// Names and values with their escapes undone; a `+` stays one.
    private static func parameters(
        _ query: Substring
    ) throws(PurgeFault) -> [(name: String, value: String)] {
        var parameters: [(name: String, value: String)] = []
        for text in query.split(separator: "&") {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let bytes = PercentText.decoded(Array((parts.last ?? "").utf8)[...]),
                let value = String(validating: bytes, as: UTF8.self)
            else { throw .parameter(name, allowed: "text in UTF-8, percent-encoded") }
            parameters.append((name, parts.count > 1 ? value : ""))
        }
        return parameters
    }
}
