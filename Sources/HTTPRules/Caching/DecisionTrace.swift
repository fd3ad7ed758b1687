/// How the node produced a response: the key, the freshness and the storing decision, for
/// diagnosis.
///
/// Each stage fills in what it knows; `nil` and empty values are not printed.
package struct DecisionTrace: Hashable, Sendable {
    /// The cache key that was looked up.
    package var key: [UInt8] = []
    /// The field names that select the variant; empty without a variant.
    package var variantNames = FieldNames()
    /// The key of the variant, including its line feeds (``VariantKey``).
    package var variantKey: [UInt8] = []
    /// How the lookup result was used, such as `hit`, `validate`, `pass`.
    package var outcome: String?
    /// The reason for ``outcome``; `nil` if the outcome implies it.
    package var reason: String?

    /// The response's current age in seconds (RFC 9111 §4.2.3).
    package var ageSeconds: Int64?
    /// The response's freshness lifetime in seconds (RFC 9111 §4.2.1).
    package var lifetimeSeconds: Int64?
    /// The source of the lifetime, such as `s-maxage`, `expires`, `heuristic`.
    package var lifetimeSource: String?
    /// The name of the field that held the directives: Nuthatch-Cache-Control, CDN-Cache-Control or
    /// Cache-Control (RFC 9213 §2.2).
    package var controlField: String?
    /// Seconds after the lifetime in which the response may be used while it is revalidated (RFC
    /// 5861 §3).
    package var staleWhileRevalidateSeconds: Int64?
    /// Seconds after the lifetime in which the response may be used if the origin fails (RFC 5861
    /// §4).
    package var staleIfErrorSeconds: Int64?
    /// The names of further flags of the stored response, such as `must-revalidate`.
    package var flags: [String] = []

    /// True if this response was stored; `nil` if this request did not decide it.
    package var isStored: Bool?
    /// The reason why the response was or was not stored.
    package var storageReason: String?
    /// The tags stored with the response; the line prints their number and the first names.
    package var tags: [[UInt8]] = []

    /// Creates an empty trace.
    package init() {}

    /// The maximum length of the printed line in bytes.
    ///
    /// Each member has a limit of its own, chosen so that all together never exceed this one.
    package static let bytesMax = 4096

    /// Appends the trace as the value of one field line: a dictionary in ASCII (RFC 9651 §3.2).
    ///
    /// Long strings are cut; of long lists the first members are printed.
    package func append(to bytes: inout [UInt8]) {
        var line = BoundedDictionaryWriter()
        line.add("verdict", token: outcome)
        line.add("reason", token: reason)
        line.add("age", number: ageSeconds)
        line.add("lifetime", number: lifetimeSeconds)
        line.add("source", token: lifetimeSource)
        if let ageSeconds, let lifetimeSeconds {
            let (left, overflow) = lifetimeSeconds.subtractingReportingOverflow(ageSeconds)
            line.add("ttl", number: overflow ? nil : left)
        }
        line.add("control", token: controlField)
        line.add("stale-while-revalidate", number: staleWhileRevalidateSeconds)
        line.add("stale-if-error", number: staleIfErrorSeconds)
        line.add("marks", list: flags.map { Array($0.utf8) })
        line.add("stored", flag: isStored)
        line.add("storing", token: storageReason)
        line.add("key", string: key)
        line.add("vary", list: variantNames.names)
        line.add("variant", string: variantKey)
        line.add("tag-count", number: tags.isEmpty ? nil : Int64(tags.count))
        line.add("tags", list: tags)
        bytes += line.bytes
    }
}

/// A writer of dictionary members (RFC 9651 §4.1.2), each within its limit; `nil` and empty values
/// are skipped.
private struct BoundedDictionaryWriter {
    /// The maximum length of a token, or of a string in its place, in bytes.
    private static let tokenBytesMax = 64
    /// The maximum length of a string in bytes, without the dots that mark a cut.
    private static let stringBytesMax = 512
    /// The maximum length of a list's strings in bytes.
    private static let listBytesMax = 512

    private(set) var bytes: [UInt8] = []

    mutating func add(_ name: StaticString, number: Int64?) {
        guard let number else { return }
        begin(name)
        bytes.append(UInt8(ascii: "="))
        StructuredText.append(number, to: &bytes)
    }

    mutating func add(_ name: StaticString, flag: Bool?) {
        guard let flag else { return }
        begin(name)
        if !flag { bytes += "=?0".utf8 }
    }

    mutating func add(_ name: StaticString, token: String?) {
        guard let token, !token.isEmpty else { return }
        begin(name)
        bytes.append(UInt8(ascii: "="))
        StructuredText.append(tokenOrString: token, bytesMax: Self.tokenBytesMax, to: &bytes)
    }

    mutating func add(_ name: StaticString, string: [UInt8]) {
        guard !string.isEmpty else { return }
        begin(name)
        bytes.append(UInt8(ascii: "="))
        StructuredText.append(string: string, bytesMax: Self.stringBytesMax, to: &bytes)
    }

    /// Adds an inner list with as many of the strings as the limit allows.
    mutating func add(_ name: StaticString, list: [[UInt8]]) {
        guard !list.isEmpty else { return }
        begin(name)
        bytes += "=(".utf8
        let start = bytes.count
        for member in list {
            let before = bytes.count
            if before > start { bytes.append(UInt8(ascii: " ")) }
            StructuredText.append(string: member, bytesMax: Self.listBytesMax, to: &bytes)
            guard bytes.count - start <= Self.listBytesMax else {
                bytes.removeSubrange(before...)
                break
            }
        }
        bytes.append(UInt8(ascii: ")"))
    }

    private mutating func begin(_ name: StaticString) {
        if !bytes.isEmpty { bytes += ", ".utf8 }
        bytes += name.description.utf8
    }
}
