import Ground

/// What a client wants to be purged, checked and in canonical form.
package enum PurgeTarget: Hashable, Sendable {
    /// One URL with all its variants, as the client's or the origin's; a canonical key.
    case url([UInt8])
    /// A whole host, or a path and all below it; a canonical key without a query.
    ///
    /// `/a` is `/a`, `/a?…` and `/a/…`, and not `/ab`; `/a/` is all below it. `/`, or no path, is
    /// the host, and that on every port where none is written.
    case prefix([UInt8])
    case tag([UInt8])
    case everything

    /// The target for the URL that `text` spells, `https://…`, `http://…` or `//…`; the scheme
    /// means nothing beyond its port.
    package static func url(
        reading text: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) throws(PurgeTargetFault) -> PurgeTarget {
        .url(try key(of: text, bytesMax: bytesMax))
    }

    /// The target for all URLs that begin with `text`, `https://HOST[:PORT][/PATH]`; scheme and
    /// slashes may be left out.
    package static func prefix(
        reading text: [UInt8], bytesMax: Int = CacheKey.bytesMaxDefault
    ) throws(PurgeTargetFault) -> PurgeTarget {
        guard !text.isEmpty else { throw .url(.empty) }
        guard !text.contains(UInt8(ascii: "?")), !text.contains(UInt8(ascii: "#")) else {
            throw .prefixQuery
        }
        let slash = text.firstIndex(of: UInt8(ascii: "/")) ?? text.endIndex
        let isURL = text[slash...].starts(with: "//".utf8)
        let url = isURL ? text : Array("//".utf8) + text
        return .prefix(try key(of: url, bytesMax: bytesMax))
    }

    /// The target for all answers with the tag `text`.
    package static func tag(reading text: [UInt8]) throws(PurgeTargetFault) -> PurgeTarget {
        guard let first = text.first, let last = text.last else { throw .tagEmpty }
        guard text.count <= AnswerTags.tagBytesMax else { throw .tagTooLong }
        let isHeld = text.allSatisfy { $0 >= 0x20 && $0 != 0x7F || FieldSyntax.isWhite($0) }
        guard isHeld else { throw .tagControl }
        guard !FieldSyntax.isWhite(first), !FieldSyntax.isWhite(last) else { throw .tagBlank }
        return .tag(text)
    }

    private static func key(
        of text: [UInt8], bytesMax: Int
    ) throws(PurgeTargetFault) -> [UInt8] {
        let url = text.starts(with: "//".utf8) ? Array("http:".utf8) + text : text
        var key: [UInt8] = []
        let result = CacheKey.normalise(
            url: url.span, at: 0..<url.count, into: &key, bytesMax: bytesMax)
        if case .refused(let refusal) = result { throw .url(refusal) }
        return key
    }
}

/// Why something cannot be purged, because nothing can be called so.
package enum PurgeTargetFault: Error, Hashable, Sendable {
    case url(URLRefusal)
    /// A prefix with a query or a fragment.
    case prefixQuery
    case tagEmpty
    case tagTooLong
    /// A control byte, which no field value holds.
    case tagControl
    /// White space at an end, which is no part of any tag.
    case tagBlank

    /// What is wrong, and what is allowed.
    package var sentence: String {
        switch self {
        case .url(let refusal): refusal.sentence
        case .prefixQuery:
            "A prefix is a host, or a host and a path up to a slash or to the path's end, without "
                + "a query and #."
        case .tagEmpty: "The tag is empty; 1 to \(AnswerTags.tagBytesMax) bytes are allowed."
        case .tagTooLong:
            "The tag is longer than \(AnswerTags.tagBytesMax) bytes, the most that is allowed."
        case .tagControl: "The tag has a control character; no tag of an answer can have one."
        case .tagBlank:
            "The tag begins or ends with white space, which is no part of any tag; one tag is "
                + "allowed in each target."
        }
    }
}
