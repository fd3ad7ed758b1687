import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry

extension RequestHandler {
    /// Which part of an entry a request gets.
    func select(
        _ request: BufferedRequest, _ facts: RequestTraits, of entry: EntryMetadata,
        _ head: RenderedHead
    ) -> Selection {
        let tag = head.slice(head.entityTag)
        return Selection.decide(
            facts, lines: request.lines, in: request.head.span, entityTag: tag.span, facts: entry,
            rangesMax: settings.rangesMax, now: SystemClock.wallTime())
    }

    /// Gives what was selected of an entry.
    func send(
        _ selection: Selection, of entry: MemoryEntry, handling: CacheHandling, isHead: Bool,
        now: Instant
    ) {
        let head = RenderedHead(entry)
        switch selection {
        case .whole: sendWhole(entry, handling: handling, isHead: isHead, now: now)
        case .notModified:
            writer?.retain(entry)
            sendNotModified(head, entry.metadata, handling, now: now)
        case .preconditionFailed: sendProblem(.preconditionFailed)
        case .unsatisfiable: sendRangeNotSatisfiable(size: entry.metadata.size)
        case .parts(let ranges) where ranges.count == 1:
            sendPartialHead(ranges[0], head, entry.metadata, handling, now: now)
            let range = ranges[0]
            stream(entry, [.body(from: range.first, count: range.count)])
            proceed()
        case .parts(let ranges):
            sendMultipart(ranges, of: entry, handling, now: now)
        }
    }

    /// 304 (RFC 9110 §15.4.5).
    func sendNotModified(
        _ head: RenderedHead, _ facts: EntryMetadata, _ note: CacheHandling, now: Instant
    ) {
        if !note.isHit { addCacheStatus(note, facts, now: now) }
        sendHead(
            Self.notModifiedLine, status: 304, head, from: head.layout.notModifiedStart
        ) {
            appendTail(facts, note, to: &$0, now: now)
        }
        finishResponse()
    }

    /// 416 with the length that the ranges missed (RFC 9110 §15.5.17).
    func sendRangeNotSatisfiable(size: UInt64) {
        sendProblem(
            .rangeNotSatisfiable(size: size), fields: "Content-Range: bytes */\(size)\r\n")
    }

    /// The head of a 206 with one range.
    func sendPartialHead(
        _ range: ByteRange, _ head: RenderedHead, _ facts: EntryMetadata, _ note: CacheHandling,
        now: Instant
    ) {
        if !note.isHit { addCacheStatus(note, facts, now: now) }
        sendHead(
            Self.partialLine, status: 206, head, from: head.layout.partialStart
        ) {
            $0.append("content-length: ")
            $0.append(range.count)
            $0.append("\r\ncontent-range: bytes ")
            $0.append(range.first)
            $0.append("-")
            $0.append(range.last)
            $0.append("/")
            $0.append(facts.size)
            $0.append("\r\n")
            appendTail(facts, note, to: &$0, now: now)
        }
    }

    /// A 206 with several ranges (RFC 9110 §14.6).
    private func sendMultipart(
        _ ranges: [ByteRange], of entry: MemoryEntry, _ note: CacheHandling, now: Instant
    ) {
        let head = RenderedHead(entry)
        let parts = MultipartRanges(
            ranges: ranges, size: entry.metadata.size,
            contentType: head.slice(head.layout.contentType), boundary: .random(in: .min ... .max))
        var type: [UInt8] = []
        parts.appendContentType(to: &type)
        if !note.isHit { addCacheStatus(note, entry.metadata, now: now) }
        sendHead(
            Self.partialLine, status: 206, head, from: head.layout.multipartStart
        ) {
            $0.append("content-length: ")
            $0.append(parts.contentLength)
            $0.append("\r\ncontent-type: ")
            $0.append(type)
            $0.append("\r\n")
            appendTail(entry.metadata, note, to: &$0, now: now)
        }
        stream(entry, parts.segments)
        proceed()
    }

    /// The head of an answer whose body is still being received.
    func sendWholeHead(
        _ response: FetchedResponse, _ framing: ResponseFraming, _ note: CacheHandling, now: Instant
    ) {
        if framing == .untilClose { closesAfterResponse = true }
        if !note.isHit { addCacheStatus(note, response.metadata, now: now) }
        let line = Array(response.head.bytes[..<response.head.statusLineEnd])
        sendHead(
            line, status: response.head.status, response.head,
            from: response.head.layout.partialStart
        ) {
            switch framing {
            case .length(let bytes):
                $0.append("content-length: ")
                $0.append(bytes)
                $0.append("\r\n")
            case .chunked where protocolVersion == .http1:
                $0.append("transfer-encoding: chunked\r\n")
            case .chunked, .untilClose, .none: break
            }
            appendTail(response.metadata, note, to: &$0, now: now)
        }
    }

    private static let notModifiedLine = Array("HTTP/1.1 304 Not Modified\r\n".utf8)
    private static let partialLine = Array("HTTP/1.1 206 Partial Content\r\n".utf8)

    /// Writes the first line, the fields of `head` from `start`, and what `more` adds.
    func sendHead(
        _ firstLine: [UInt8], status: UInt16, _ head: RenderedHead, from start: Int,
        more: (inout HeadWriter) -> Void
    ) {
        beginResponse(status: status)
        let room =
            firstLine.count + head.bytes.count + extraFieldLines.count + HeadWriter.linesBytesMax
        let buffer = context.headBuffers.with { buffer in
            buffer.writeHead(room: room) { writer in
                writer.append(firstLine)
                writer.append(head.bytes, from: start)
                if !extraFieldLines.isEmpty { writer.append(extraFieldLines) }
                more(&writer)
            }
        }
        writer?.send(head: buffer)
    }
}

extension MultipartRanges {
    /// The whole content, in its order.
    fileprivate var segments: [ResponseBodyPart] {
        var segments: [ResponseBodyPart] = []
        for index in ranges.indices {
            var text: [UInt8] = []
            appendPartHead(index, to: &text)
            segments.append(.text(ByteBuffer(bytes: text)))
            segments.append(.body(from: ranges[index].first, count: ranges[index].count))
        }
        var tail: [UInt8] = []
        appendTail(to: &tail)
        segments.append(.text(ByteBuffer(bytes: tail)))
        return segments
    }
}
