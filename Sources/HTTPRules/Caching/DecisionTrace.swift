/// How the node came to give an answer, told to whoever may ask for it: what it knew of the key, of
/// freshness and of storing.
///
/// Whoever decides fills in what is known; nil and empty are not told.
package struct DecisionTrace: Hashable, Sendable {
    /// What was looked for in the store.
    package var key: [UInt8] = []
    /// The names that select a variant of it; empty without a variant.
    package var variantNames = FieldNames()
    /// The key of the variant; line feeds and all.
    package var variantKey: [UInt8] = []
    /// What was done with what was found, such as `hit`, `validate`, `pass`.
    package var outcome: String?
    /// Why, if the verdict does not say it.
    package var reason: String?

    /// Seconds since the answer's age was 0 (RFC 9111 §4.2.3).
    package var ageSeconds: Int64?
    /// Seconds from the birth of the answer to its last fresh moment (RFC 9111 §4.2.1).
    package var lifetimeSeconds: Int64?
    /// What the lifetime was taken from, such as `s-maxage`, `expires`, `heuristic`.
    package var lifetimeSource: String?
    /// The field that held the directives: Nuthatch-Cache-Control, CDN-Cache-Control or
    /// Cache-Control (RFC 9213 §2.2).
    package var controlField: String?
    /// Seconds after the lifetime in which it may be used while it is validated (RFC 5861 §3).
    package var staleWhileRevalidateSeconds: Int64?
    /// Seconds after the lifetime in which it may be used if the origin fails (RFC 5861 §4).
    package var staleIfErrorSeconds: Int64?
    /// Further facts of the stored answer by name, such as `must-revalidate`.
    package var flags: [String] = []

    /// Whether this answer was stored; nil if that was not for this request to decide.
    package var isStored: Bool?
    /// Why it was or was not.
    package var storageReason: String?
    /// The tags it was stored with; how many there are is told, and the names of the first.
    package var tags: [[UInt8]] = []

    package init() {}

    /// Bytes of the printed line at most.
    ///
    /// Each member has its own limit, and all together pass this one in no case.
    package static let bytesMax = 4096

    /// Appends the value of one line: a dictionary in ASCII (RFC 9651 §3.2).
    ///
    /// What is long is cut; of long lists the first members are printed.
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

/// Members of a dictionary (RFC 9651 §4.1.2), each within its limit; what is nil or empty is none.
private struct BoundedDictionaryWriter {
    /// Bytes of a token, and of a string in place of one, at most.
    private static let tokenBytesMax = 64
    /// Bytes of a string at most, without the dots that tell that it was cut.
    private static let stringBytesMax = 512
    /// Bytes of a list's strings at most.
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

    /// Adds an inner list of strings, as far as they are within the limit.
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
