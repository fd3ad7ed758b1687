/// Elements and texts of an XML document (XML 1.0), one after the other, without attributes,
/// comments, processing instructions and declarations.
///
/// Forgiving: whether an end belongs to its beginning is not looked at.
struct XMLScanner {
    enum Event: Hashable {
        /// The element's local name, without the prefix of a namespace; an empty element opens and
        /// closes.
        case elementStart([UInt8])
        case elementEnd
        /// What stands between two tags, trimmed, with the five entities of XML and numbers
        /// replaced; never empty.
        case text(String)
    }

    private let bytes: ArraySlice<UInt8>
    private var position: Int
    /// An element without content was opened.
    private var hasPendingElementEnd = false
    /// What was read of a text that a comment or CDATA has parted.
    private var text: [UInt8] = []
    /// It is more than white space.
    private var hasNonWhitespace = false
    /// Comes after the text before it.
    private var pendingEvent: Event?

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// Nil at the end.
    mutating func next() throws(Sitemap.FormatError) -> Event? {
        if let event = pendingEvent.take() { return event }
        if hasPendingElementEnd {
            hasPendingElementEnd = false
            return .elementEnd
        }
        while position < bytes.endIndex {
            guard bytes[position] == UInt8(ascii: "<") else {
                readText()
                continue
            }
            guard let tag = try readMarkup() else { continue }
            let value = String(decoding: text[...].trimmed, as: UTF8.self)
            text.removeAll(keepingCapacity: true)
            hasNonWhitespace = false
            if value.isEmpty { return tag }
            pendingEvent = tag
            return .text(value)
        }
        return nil
    }

    private mutating func readText() {
        let end = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.endIndex
        let start = text.count
        Self.appendUnescaped(bytes[position..<end], to: &text)
        hasNonWhitespace = hasNonWhitespace || text[start...].contains { $0 > 0x20 }
        position = end
    }

    /// What stands at a `<`; nil if it is no tag.
    private mutating func readMarkup() throws(Sitemap.FormatError) -> Event? {
        let rest = bytes[position...]
        if rest.starts(with: Self.comment) {
            _ = try skip(Self.comment.count, to: Self.commentEnd)
            return nil
        }
        if rest.starts(with: Self.cdataStart) {
            let literal = try skip(Self.cdataStart.count, to: Self.cdataEnd)
            text += literal
            hasNonWhitespace = hasNonWhitespace || literal.contains { $0 > 0x20 }
            return nil
        }
        let inside = try skip(1, to: [UInt8(ascii: ">")])
        switch inside.first {
        case UInt8(ascii: "!"), UInt8(ascii: "?"), nil: return nil
        case UInt8(ascii: "/"): return .elementEnd
        default:
            if inside.last == UInt8(ascii: "/") {
                // Within a text it parts nothing.
                guard !hasNonWhitespace else { return nil }
                hasPendingElementEnd = true
            }
            let name = inside.prefix { $0 > 0x20 && $0 != UInt8(ascii: "/") }
            let colon = name.lastIndex(of: UInt8(ascii: ":"))
            return .elementStart(Array(colon.map { name[($0 + 1)...] } ?? name))
        }
    }

    /// What stands between `count` bytes from here and `end`; goes on behind that.
    private mutating func skip(
        _ count: Int, to end: [UInt8]
    ) throws(Sitemap.FormatError) -> ArraySlice<UInt8> {
        let start = position + count
        guard start <= bytes.endIndex, let found = bytes[start...].firstRange(of: end) else {
            throw .truncated
        }
        position = found.upperBound
        return bytes[start..<found.lowerBound]
    }

    private static let comment = Array("<!--".utf8)
    private static let commentEnd = Array("-->".utf8)
    private static let cdataStart = Array("<![CDATA[".utf8)
    private static let cdataEnd = Array("]]>".utf8)

    /// References that are none stay as they are.
    static func appendUnescaped(_ bytes: ArraySlice<UInt8>, to text: inout [UInt8]) {
        var rest = bytes
        while let start = rest.firstIndex(of: UInt8(ascii: "&")) {
            text += rest[..<start]
            rest = rest[start...]
            let end = rest.prefix(12).firstIndex(of: UInt8(ascii: ";"))
            if let end, let character = character(rest[(start + 1)..<end]) {
                text += Array(String(character).utf8)
                rest = rest[(end + 1)...]
            } else {
                text.append(UInt8(ascii: "&"))
                rest = rest.dropFirst()
            }
        }
        text += rest
    }

    private static func character(_ name: ArraySlice<UInt8>) -> Character? {
        switch String(decoding: name, as: UTF8.self) {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        case let number where number.hasPrefix("#x"):
            UInt32(number.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init).map(Character.init)
        case let number where number.hasPrefix("#"):
            UInt32(number.dropFirst()).flatMap(Unicode.Scalar.init).map(Character.init)
        default: nil
        }
    }
}
