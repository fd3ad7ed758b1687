import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Telemetry

extension Door {
    /// Which part of an entry a request gets.
    func select(
        _ request: PendingRequest, _ facts: RequestFacts, of entry: EntryFacts, _ head: RenderedHead
    ) -> Selection {
        let tag = head.text(head.entityTag)
        return Selection.decide(
            facts, lines: request.lines, in: request.head.span, entityTag: tag.span, facts: entry,
            rangesMax: settings.rangesMax, now: SystemClock.wallTime())
    }

    /// Gives what was selected of an entry.
    func send(
        _ selection: Selection, of resident: Resident, note: CacheNote, isHead: Bool, now: Instant
    ) {
        let head = RenderedHead(resident)
        switch selection {
        case .whole: sendWhole(resident, note: note, isHead: isHead, now: now)
        case .notModified:
            outlet?.lend(resident)
            sendNotModified(head, resident.facts, note, now: now)
        case .preconditionFailed: answerProblem(.preconditionFailed)
        case .unsatisfiable: answerUnsatisfiable(size: resident.facts.size)
        case .parts(let ranges) where ranges.count == 1:
            sendPartHead(ranges[0], head, resident.facts, note, now: now)
            let range = ranges[0]
            stream(resident, [.body(from: range.first, count: range.count)])
            proceed()
        case .parts(let ranges):
            sendParts(ranges, of: resident, note, now: now)
        }
    }

    /// 304 (RFC 9110 §15.4.5).
    func sendNotModified(
        _ head: RenderedHead, _ facts: EntryFacts, _ note: CacheNote, now: Instant
    ) {
        if !note.isHit { addStatusLine(note, facts, now: now) }
        sendHead(
            Self.notModifiedLine, status: 304, head, from: head.layout.notModifiedStart
        ) {
            appendTail(facts, note, to: &$0, now: now)
        }
        finishAnswer()
    }

    /// 416 with the length that the ranges missed (RFC 9110 §15.5.17).
    func answerUnsatisfiable(size: UInt64) {
        answerProblem(
            .rangeNotSatisfiable(size: size), fields: "Content-Range: bytes */\(size)\r\n")
    }

    /// The head of a 206 with one range.
    func sendPartHead(
        _ range: ByteRange, _ head: RenderedHead, _ facts: EntryFacts, _ note: CacheNote,
        now: Instant
    ) {
        if !note.isHit { addStatusLine(note, facts, now: now) }
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
    private func sendParts(
        _ ranges: [ByteRange], of resident: Resident, _ note: CacheNote, now: Instant
    ) {
        let head = RenderedHead(resident)
        let parts = MultipartRanges(
            ranges: ranges, size: resident.facts.size,
            contentType: head.text(head.layout.contentType), boundary: .random(in: .min ... .max))
        var type: [UInt8] = []
        parts.appendContentType(to: &type)
        if !note.isHit { addStatusLine(note, resident.facts, now: now) }
        sendHead(
            Self.partialLine, status: 206, head, from: head.layout.multipartStart
        ) {
            $0.append("content-length: ")
            $0.append(parts.contentLength)
            $0.append("\r\ncontent-type: ")
            $0.append(type)
            $0.append("\r\n")
            appendTail(resident.facts, note, to: &$0, now: now)
        }
        stream(resident, parts.segments)
        proceed()
    }

    /// The head of an answer whose body is still being received.
    func sendWholeHead(
        _ answer: FillAnswer, _ framing: Framing, _ note: CacheNote, now: Instant
    ) {
        if framing == .untilClose { closesAfterAnswer = true }
        if !note.isHit { addStatusLine(note, answer.facts, now: now) }
        let line = Array(answer.head.bytes[..<answer.head.statusLineEnd])
        sendHead(
            line, status: answer.head.status, answer.head, from: answer.head.layout.partialStart
        ) {
            switch framing {
            case .length(let bytes):
                $0.append("content-length: ")
                $0.append(bytes)
                $0.append("\r\n")
            case .chunked where carriage == .http1: $0.append("transfer-encoding: chunked\r\n")
            case .chunked, .untilClose, .none: break
            }
            appendTail(answer.facts, note, to: &$0, now: now)
        }
    }

    private static let notModifiedLine = Array("HTTP/1.1 304 Not Modified\r\n".utf8)
    private static let partialLine = Array("HTTP/1.1 206 Partial Content\r\n".utf8)

    /// Writes the first line, the fields of `head` from `start`, and what `more` adds.
    func sendHead(
        _ firstLine: [UInt8], status: UInt16, _ head: RenderedHead, from start: Int,
        more: (inout HeadWriter) -> Void
    ) {
        beginAnswer(status: status)
        let room =
            firstLine.count + head.bytes.count + extraLines.count + HeadWriter.linesBytesMax
        let buffer = hall.heads.with { buffer in
            buffer.writeHead(room: room) { writer in
                writer.append(firstLine)
                writer.append(head.bytes, from: start)
                if !extraLines.isEmpty { writer.append(extraLines) }
                more(&writer)
            }
        }
        outlet?.send(head: buffer)
    }
}

extension MultipartRanges {
    /// The whole content, in its order.
    fileprivate var segments: [Segment] {
        var segments: [Segment] = []
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
