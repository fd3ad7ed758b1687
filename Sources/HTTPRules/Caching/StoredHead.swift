package import Ground

/// The head that clients get, rendered once when an answer is stored.
///
/// The lines are ordered so that each kind of answer is one slice that runs to the end:
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
/// Every line ends in CRLF; there is no empty line at the end. Age, Cache-Status and Connection are
/// of each response and are appended then, and so is Date where the head has none.
package struct StoredHead: Hashable, Sendable {
    package private(set) var bytes: [UInt8] = []
    /// Status line and all fields of a 200.
    package var whole: Extent { from(0) }
    /// The fields for one range, without status line and Content-Length.
    package var partial: Extent { from(partialStart) }
    /// The fields for several ranges: Content-Type is missing too.
    package var multipart: Extent { from(multipartStart) }
    /// The fields of a 304.
    package var notModified: Extent { from(notModifiedStart) }
    /// The value of Content-Type, for the parts of several ranges; empty if there is none.
    package private(set) var contentType = Extent.empty
    /// The entity tag with quotes and `W/`; empty if there is none, or none that can be compared.
    package private(set) var entityTag = Extent.empty

    /// Where the slices begin.
    package private(set) var partialStart = 0
    package private(set) var multipartStart = 0
    package private(set) var notModifiedStart = 0

    /// A head that was rendered before, from what was kept of it.
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
    /// Renders the head of an answer whose body has `size` bytes; nil leaves Content-Length out.
    ///
    /// Names and values are those of `head`, byte for byte, and so is the order within each part.
    /// Before Content-Type stands what describes the content of this one message, which that of a
    /// 206 is not: Content-Range, Content-MD5 (RFC 2616 §14.15) and Content-Digest (RFC 9530 §2).
    ///
    /// Left out are the lines of one hop, Age, Content-Length, what `unstored` names (RFC 9111
    /// §5.2.2.4, §5.2.2.7) and what `rules` take out. Date is the origin's.
    ///
    /// - Parameters:
    ///   - head: the answer as it came, or as a 304 updated it.
    ///   - size: length of the body in bytes.
    ///   - rules: what the operator says of the fields.
    ///   - unstored: the fields that a qualified `no-cache` or `private` names.
    ///   - received: becomes the Date of an answer that has none (RFC 9110 §6.6.1); with nil the
    ///     head then holds none.
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

    /// The status code of rendered bytes; 200 of bytes that do not begin with one.
    package static func status(_ bytes: [UInt8]) -> UInt16 {
        guard bytes.count > 12 else { return 200 }
        return UInt16(bytes[9] &- 0x30) * 100 + UInt16(bytes[10] &- 0x30) * 10
            + UInt16(bytes[11] &- 0x30)
    }

    /// The parts of a rendered head, in their order.
    private enum Part {
        /// Of the one message that holds the whole body.
        case message
        case type
        /// Of the representation: not in a 304, whose receiver has it.
        case representation
        case rest

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
                // And its report-only form.
                let isPolicy =
                    count >= 23
                    && bytes.matchesIgnoringCase("content-security-policy", at: start..<start + 23)
                return isPolicy ? .rest : .representation
            }
        }
    }

    /// Takes the lines of an answer apart and puts them together again part by part.
    private struct Renderer {
        var bytes: [UInt8] = []
        var contentType = Extent.empty
        var entityTag = Extent.empty
        private let head: ResponseHead
        private var lines: [(part: Part, line: FieldLine)] = []
        private var settings: [(part: Part, setting: FieldSetting)] = []

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

        /// Of several lines the first counts; a tag that is none is compared with nothing.
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
