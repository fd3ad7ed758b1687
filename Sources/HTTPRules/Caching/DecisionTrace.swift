import RawStructuredFieldValues

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

    /// The maximum length of a token, or of a string in its place, in bytes.
    private static let tokenBytesMax = 64
    /// The maximum length of a string in bytes, without the dots that mark a cut.
    private static let stringBytesMax = 512
    /// The maximum length of a list's strings in bytes.
    private static let listBytesMax = 512

    /// Appends the trace as the value of one field line: a dictionary in ASCII (RFC 9651 §3.2).
    ///
    /// Long strings are cut; of long lists the first members are printed.
    package func append(to bytes: inout [UInt8]) {
        var line = OrderedMap<String, ItemOrInnerList>()
        line["verdict"] = Self.token(outcome)
        line["reason"] = Self.token(reason)
        line["age"] = Self.number(ageSeconds)
        line["lifetime"] = Self.number(lifetimeSeconds)
        line["source"] = Self.token(lifetimeSource)
        if let ageSeconds, let lifetimeSeconds {
            let (left, overflow) = lifetimeSeconds.subtractingReportingOverflow(ageSeconds)
            line["ttl"] = Self.number(overflow ? nil : left)
        }
        line["control"] = Self.token(controlField)
        line["stale-while-revalidate"] = Self.number(staleWhileRevalidateSeconds)
        line["stale-if-error"] = Self.number(staleIfErrorSeconds)
        line["marks"] = Self.list(flags.map { Array($0.utf8) })
        line["stored"] = isStored.map { Self.member(.bool($0)) }
        line["storing"] = Self.token(storageReason)
        line["key"] = Self.string(key)
        line["vary"] = Self.list(variantNames.names)
        line["variant"] = Self.string(variantKey)
        line["tag-count"] = Self.number(tags.isEmpty ? nil : Int64(tags.count))
        line["tags"] = Self.list(tags)
        var serializer = StructuredFieldValueSerializer()
        bytes += (try? serializer.writeDictionaryFieldValue(line)) ?? []
    }

    private static func member(_ value: RFC9651BareItem) -> ItemOrInnerList {
        .item(Item(bareItem: value, parameters: [:]))
    }

    private static func number(_ number: Int64?) -> ItemOrInnerList? {
        number.map { member(.clamped($0)) }
    }

    private static func token(_ text: String?) -> ItemOrInnerList? {
        guard let text, !text.isEmpty else { return nil }
        return member(.tokenOrVisible(text, bytesMax: tokenBytesMax))
    }

    private static func string(_ text: [UInt8]) -> ItemOrInnerList? {
        text.isEmpty ? nil : member(.visible(text, bytesMax: stringBytesMax))
    }

    /// Returns an inner list of as many of the strings as the limit allows.
    private static func list(_ texts: [[UInt8]]) -> ItemOrInnerList? {
        guard !texts.isEmpty else { return nil }
        var items = BareInnerList()
        var written: [UInt8] = []
        for text in texts {
            let value = RFC9651BareItem.visible(text, bytesMax: listBytesMax)
            value.append(to: &written)
            guard written.count + items.count <= listBytesMax else { break }
            items.append(Item(bareItem: value, parameters: [:]))
        }
        let none: OrderedMap<String, RFC9651BareItem> = [:]
        return .innerList(InnerList(bareInnerList: items, parameters: none))
    }
}
