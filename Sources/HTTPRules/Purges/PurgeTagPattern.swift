import Ground

/// Tags to purge, in the fields and the syntax of the purge plug-ins for Varnish.
///
/// They send a regular expression for Varnish to match with a response's tags. Most expressions are
/// a list of tags, which this type reads: tags separated by `|`, commas or white space, with any of
/// `\b`, `(^|,)`, `(,|$)` and parentheses around a tag or several, and `\` before a character of
/// punctuation. A dot stands for itself.
enum PurgeTagPattern {
    /// The fields with such tags: Cache-Tags and Purge-Cache-Tags of Drupal, X-Cache-Tags of
    /// FOSHttpCache, X-Cache-Tags-Pattern of Proxy Cache Purge for WordPress,
    /// X-Magento-Tags-Pattern, and the two fields of Varnish's xkey that choose between a hard and
    /// a soft purge.
    private static let fields: [(name: [UInt8], isSoft: Bool)] = [
        ("cache-tags", false), ("purge-cache-tags", false), ("x-cache-tags", false),
        ("x-cache-tags-pattern", false), ("x-magento-tags-pattern", false), ("xkey-purge", false),
        ("xkey-softpurge", true),
    ].map { (name: Array($0.0.utf8), isSoft: $0.1) }

    /// Returns true if the field in `range` of `bytes` has such tags and purges softly, false if it
    /// purges hard; `nil` for another field.
    static func isSoft(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool? {
        for field in fields where bytes.matchesFieldName(at: range, of: field.name) {
            return field.isSoft
        }
        return nil
    }

    /// The value that covers every response, tagged or not.
    static let everything = Array(".*".utf8)

    /// Returns the tags of a field's value, in order.
    ///
    /// - Throws: ``PurgeCommandFault/tagPattern`` if the value is another regular expression.
    static func tags(of value: [UInt8]) throws(PurgeCommandFault) -> [[UInt8]] {
        var tags: [[UInt8]] = []
        var tag: [UInt8] = []
        // True behind the end of a tag, where only a separator may follow.
        var isClosed = false
        var rest = value[...]
        while let byte = rest.first {
            if let anchor = anchors.first(where: { rest.starts(with: $0.text) }) {
                rest = rest.dropFirst(anchor.text.count)
                guard anchor.isAtStart != false || !tag.isEmpty || isClosed else {
                    throw .tagPattern
                }
                guard anchor.isAtStart != true || tag.isEmpty && !isClosed else {
                    throw .tagPattern
                }
                isClosed = isClosed || !tag.isEmpty
                continue
            }
            rest = rest.dropFirst()
            switch byte {
            case _ where "|,".utf8.contains(byte) || ASCII.isWhitespace(byte):
                if !tag.isEmpty { tags.append(tag) }
                (tag, isClosed) = ([], false)
            case _ where isClosed || metacharacters.contains(byte): throw .tagPattern
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst(), isPunctuation(escaped) else {
                    throw .tagPattern
                }
                tag.append(escaped)
            default: tag.append(byte)
            }
        }
        if !tag.isEmpty { tags.append(tag) }
        return tags
    }

    /// The parts of an expression around a tag; `isAtStart` is `nil` if they may be on either side.
    private static let anchors: [(text: [UInt8], isAtStart: Bool?)] = [
        ("(^|,)", true), ("(,|$)", false), ("\\b", nil), ("(", true), (")", false), ("^", true),
        ("$", false),
    ].map { (text: Array($0.0.utf8), isAtStart: $0.1) }

    private static let metacharacters = Array("[]{}*+?".utf8)

    private static func isPunctuation(_ byte: UInt8) -> Bool {
        (0x21..<0x7F).contains(byte) && !ASCII.isLetter(byte) && !ASCII.isDigit(byte)
    }
}
