import Ground

/// A field line of an operator's: it stands in messages in place of all lines of its name.
package struct FieldSetting: Hashable, Sendable {
    /// As it was written; compared without regard to case (RFC 9110 §5.1).
    package let name: [UInt8]
    /// Without white space around it.
    package let value: [UInt8]
    let id: FieldName

    /// A line `name: value`; nil if the name is no token, or the value has a byte that no value
    /// holds (RFC 9110 §5.1, §5.5).
    package init?(name: String, value: String) {
        self.init(name: Array(name.utf8), value: Array(value.utf8))
    }

    /// The same from bytes.
    package init?(name: [UInt8], value: [UInt8]) {
        let nameBytes = name.span
        guard !name.isEmpty, !name.contains(where: { !ByteSet.token.contains($0) }),
            !value.contains(where: { $0 == 0x7F || ($0 < 0x20 && $0 != 0x09) })
        else { return nil }
        self.name = name
        self.value = Array(value[FieldSyntax.trimmed(value.span, at: value.indices)])
        id = FieldName(nameBytes, at: 0..<name.count)
    }

    /// A line of this room's own, which needs no look.
    init(_ id: FieldName, _ name: String, _ value: [UInt8]) {
        self.id = id
        self.name = Array(name.utf8)
        self.value = value
    }
}

extension [FieldSetting] {
    /// True if one of them stands in place of the field in `range` of `bytes`.
    func contains(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        contains { setting in
            bytes.matchesFieldName(at: range, of: setting.name.span, at: setting.name.indices)
        }
    }
}
