package import Ground

/// The head that clients receive, rendered once when a response is stored.
///
/// The lines are ordered so that each kind of response is one slice that runs to the end:
///
///     HTTP/1.1 NNN Reason  ┐ whole
///     Content-Length: …    │
///     Content-Digest: …    │
///     Content-Type: …      │ ┐ partial: 206 of one range, 416
///     Content-Encoding: …  │ │ ┐ multipart: 206 of several ranges
///     Accept-Ranges: …     │ │ │
///     Date: …              │ │ │ ┐ notModified: 304 (RFC 9110 §15.4.5)
///     everything else      ┘ ┘ ┘ ┘
///
/// Every line ends in CRLF; there is no empty line at the end. Age, Cache-Status and Connection
/// differ for each response and are appended when it is sent; so is Date if the head has none.
package struct StoredHead: Hashable, Sendable {
    /// The rendered lines.
    package private(set) var bytes: [UInt8] = []
    /// The status line and all fields of a complete response.
    package var whole: Extent { from(0) }
    /// The fields for one range, without status line and Content-Length.
    package var partial: Extent { from(partialStart) }
    /// The fields for several ranges, without Content-Type too.
    package var multipart: Extent { from(multipartStart) }
    /// The fields of a 304.
    package var notModified: Extent { from(notModifiedStart) }
    /// The value of Content-Type, for the parts of several ranges; empty if there is none.
    package private(set) var contentType = Extent.empty
    /// The entity tag with quotes and `W/`; empty if there is none that can be compared.
    package private(set) var entityTag = Extent.empty

    /// The offset at which ``partial`` begins.
    package private(set) var partialStart = 0
    /// The offset at which ``multipart`` begins.
    package private(set) var multipartStart = 0
    /// The offset at which ``notModified`` begins.
    package private(set) var notModifiedStart = 0

    /// Creates a head that was rendered before, from its stored parts.
    ///
    /// - Parameters:
    ///   - bytes: the rendered lines.
    ///   - partialStart: the offset at which ``partial`` begins.
    ///   - multipartStart: the offset at which ``multipart`` begins.
    ///   - notModifiedStart: the offset at which ``notModified`` begins.
    ///   - contentType: the value of Content-Type in `bytes`; empty if there is none.
    ///   - entityTag: the entity tag in `bytes`; empty if there is none.
    package init(
        rendered bytes: [UInt8], partialStart: Int, multipartStart: Int, notModifiedStart: Int,
        contentType: Extent, entityTag: Extent
    ) {
        self.bytes = bytes
        self.partialStart = partialStart
        self.multipartStart = multipartStart
        self.notModifiedStart = notModifiedStart
        self.contentType = contentType
        self.entityTag = entityTag
    }

    private func from(_ start: Int) -> Extent {
        Extent(start: start, count: bytes.count - start)
    }
}

extension StoredHead {
    /// Renders the head of a response.
    ///
    /// Names and values are those of `head`, byte for byte, in the same order within each part.
    /// Fields that describe the content of the complete message, and so not that of a 206, come
    /// before Content-Type: Content-Range, Content-MD5 (RFC 2616 §14.15) and Content-Digest (RFC
    /// 9530 §2).
    ///
    /// Hop-by-hop fields, Age, the origin's Content-Length, fields in `unstored` (RFC 9111
    /// §5.2.2.4, §5.2.2.7) and fields that `rules` remove are left out. Date is the origin's.
    ///
    /// - Parameters:
    ///   - head: the response as received, or as updated by a 304.
    ///   - size: the length of the body in bytes; `nil` to omit Content-Length.
    ///   - rules: the operator's rules for response fields.
    ///   - unstored: the fields that a qualified `no-cache` or `private` names.
    ///   - received: the Date of a response that has none (RFC 9110 §6.6.1); with `nil` the head
    ///     then has none.
    package init(
        _ head: ResponseHead, size: UInt64?, rules: ResponseFieldRules = .none,
        unstored: FieldNames = FieldNames(), received: WallTime? = nil
    ) {
        var pieces = Renderer(head, rules: rules, unstored: unstored)
        pieces.bytes.reserveCapacity(head.bytes.count + 128)
        StatusLine.append(head, to: &pieces.bytes)
        if let size {
            pieces.bytes.append(contentsOf: "Content-Length: ".utf8)
            ASCII.append(size, to: &pieces.bytes)
            pieces.bytes.appendLineEnd()
        }
        pieces.append(.message)
        let partialStart = pieces.bytes.count
        pieces.append(.type)
        let multipartStart = pieces.bytes.count
        pieces.append(.representation)
        let notModifiedStart = pieces.bytes.count
        if let received, head.first(.date) == nil { pieces.bytes.appendDate(received) }
        pieces.append(.rest)
        self.init(
            rendered: pieces.bytes, partialStart: partialStart, multipartStart: multipartStart,
            notModifiedStart: notModifiedStart, contentType: pieces.contentType,
            entityTag: pieces.entityTag)
    }

    /// Returns the status code of rendered bytes; 200 if they are too short to hold one.
    package static func status(_ bytes: [UInt8]) -> UInt16 {
        guard bytes.count > 12 else { return 200 }
        return UInt16(bytes[9] &- 0x30) * 100 + UInt16(bytes[10] &- 0x30) * 10
            + UInt16(bytes[11] &- 0x30)
    }

    /// The parts of a rendered head, in their order.
    private enum Part {
        /// Fields about the message with the whole body.
        case message
        case type
        /// Fields about the representation; not in a 304, whose receiver has them.
        case representation
        case rest

        /// Selects the part that the field with this name belongs to.
        init(_ id: FieldName, _ bytes: Span<UInt8>, at name: Range<Int>) {
            switch id {
            case .contentRange: self = .message
            case .contentType: self = .type
            case .contentEncoding, .contentLanguage, .contentDisposition, .acceptRanges:
                self = .representation
            case .other: self = Self.other(bytes, at: name)
            default: self = .rest
            }
        }

        private static func other(_ bytes: Span<UInt8>, at name: Range<Int>) -> Part {
            switch name.count {
            case 6 where bytes.matchesIgnoringCase("digest", at: name): return .representation
            case 11 where bytes.matchesIgnoringCase("repr-digest", at: name): return .representation
            case 11 where bytes.matchesIgnoringCase("content-md5", at: name): return .message
            case 14 where bytes.matchesIgnoringCase("content-digest", at: name): return .message
            case 16 where bytes.matchesIgnoringCase("content-location", at: name): return .rest
            case let count:
                let start = name.lowerBound
                guard count > 8, bytes.matchesIgnoringCase("content-", at: start..<start + 8) else {
                    return .rest
                }
                // Also matches its report-only form.
                let isPolicy =
                    count >= 23
                    && bytes.matchesIgnoringCase("content-security-policy", at: start..<start + 23)
                return isPolicy ? .rest : .representation
            }
        }
    }

    /// Sorts the lines of a response into parts and renders them.
    private struct Renderer {
        var bytes: [UInt8] = []
        var contentType = Extent.empty
        var entityTag = Extent.empty
        private let head: ResponseHead
        private var lines: [(part: Part, line: FieldLine)] = []
        private var settings: [(part: Part, setting: FieldSetting)] = []

        /// Selects the lines to render; nothing is rendered yet.
        init(_ head: ResponseHead, rules: ResponseFieldRules, unstored: FieldNames) {
            self.head = head
            let span = head.bytes.span
            let hop = HopByHop(head.lines, in: span)
            for line in head.lines {
                switch line.id {
                case .age, .contentLength: continue
                case .cacheControl where rules.clientCacheControl != nil: continue
                case .expires where rules.clientCacheControl != nil: continue
                default: break
                }
                let isDropped =
                    hop.contains(line, in: span) || rules.removes(line, in: span)
                    || unstored.contains(span, at: line.name.range)
                if isDropped { continue }
                lines.append((Part(line.id, span, at: line.name.range), line))
            }
            for setting in rules.lines {
                if rules.clientCacheControl != nil,
                    setting.id == .cacheControl || setting.id == .expires
                {
                    continue
                }
                let name = setting.name
                settings.append((Part(setting.id, name.span, at: name.indices), setting))
            }
            if let control = rules.clientCacheControl { settings.append((.rest, control)) }
        }

        /// Renders the lines of a part: those of the response, then the operator's.
        mutating func append(_ part: Part) {
            let source = head.bytes
            for (place, line) in lines where place == part {
                let start = bytes.count
                bytes.appendLine(line, of: source.span)
                recordExtent(line.id, value: Int(line.name.count) + 2 + start..<bytes.count - 2)
            }
            for (place, setting) in settings where place == part {
                let start = bytes.count
                bytes.appendLine(setting)
                recordExtent(setting.id, value: setting.name.count + 2 + start..<bytes.count - 2)
            }
        }

        /// Records the extents of the first Content-Type and of the first ETag that holds a valid
        /// tag.
        private mutating func recordExtent(_ id: FieldName, value: Range<Int>) {
            let extent = Extent(start: value.lowerBound, count: value.count)
            switch id {
            case .contentType where contentType.isEmpty: contentType = extent
            case .etag where entityTag.isEmpty && EntityTag(bytes.span, at: value) != nil:
                entityTag = extent
            default: break
            }
        }
    }
}
