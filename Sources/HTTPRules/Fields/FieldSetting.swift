import Ground

/// A field line that replaces all lines of its name in a message, set by an operator or by this
/// node.
package struct FieldSetting: Hashable, Sendable {
    /// The name as written; compared case-insensitively (RFC 9110 §5.1).
    package let name: [UInt8]
    /// The value without white space around it.
    package let value: [UInt8]
    /// The name, if it is one that Nuthatch acts on.
    let id: FieldName

    /// Creates a line `name: value`; `nil` if the name is not a token, or the value holds a control
    /// byte (RFC 9110 §5.1, §5.5).
    package init?(name: String, value: String) {
        self.init(name: Array(name.utf8), value: Array(value.utf8))
    }

    /// Creates a line from bytes; `nil` if the name is not a token, or the value holds a control
    /// byte (RFC 9110 §5.1, §5.5).
    package init?(name: [UInt8], value: [UInt8]) {
        let nameBytes = name.span
        guard !name.isEmpty, !name.contains(where: { !ByteSet.token.contains($0) }),
            !value.contains(where: { $0 == 0x7F || ($0 < 0x20 && $0 != 0x09) })
        else { return nil }
        self.name = name
        self.value = Array(value[FieldSyntax.trimmed(value.span, at: value.indices)])
        id = FieldName(nameBytes, at: 0..<name.count)
    }

    /// Creates a line of this module's own, which needs no validation.
    init(_ id: FieldName, _ name: String, _ value: [UInt8]) {
        self.id = id
        self.name = Array(name.utf8)
        self.value = value
    }
}

extension [FieldSetting] {
    /// Returns true if one of the settings replaces the field whose name is in `range` of `bytes`.
    func contains(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        contains { setting in
            bytes.matchesFieldName(at: range, of: setting.name)
        }
    }
}
