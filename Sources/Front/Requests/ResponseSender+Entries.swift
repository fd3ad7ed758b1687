import Ground
import HTTPRules
import NIOCore
import Peering
import Serving
import Store
import Telemetry

/// Responses from entries, and heads of responses that are being received.
extension ResponseSender {
    /// Key of the pending request to a site; `nil` for an image.
    var pendingKey: [UInt8]? { siteCounters == nil ? nil : requestKey }

    /// Sends an entry completely.
    func sendWhole(_ entry: MemoryEntry, handling: CacheHandling, isHead: Bool, now: Instant) {
        beginResponse(status: entry.status)
        if !handling.isHit { addCacheStatus(handling, entry.metadata, now: now) }
        let head = context.headBuffers.with { buffer in
            let room =
                entry.keyAndHead.count + extraFieldLines.count + HeadWriter.linesBytesMax
            buffer.writeHead(room: room) { writer in
                writer.append(entry.keyAndHead, from: entry.headStart)
                if !extraFieldLines.isEmpty { writer.append(extraFieldLines) }
                appendTail(entry.metadata, handling, to: &writer, now: now)
            }
        }
        let size = entry.metadata.size
        guard let writer, !isHead, size > 0 else {
            writer?.send(head: head)
            return finishResponse()
        }
        guard size <= UInt64(settings.singleWriteBytesMax) else {
            writer.send(head: head)
            return stream(entry, [.body(from: 0, count: size)])
        }
        writer.send(head: head, body: entry)
        bodyBytes = size
        finishResponse()
    }

    /// Sends an entry, or the part of it that the request selects.
    func send(
        _ entry: MemoryEntry, to request: BufferedRequest, _ facts: RequestTraits,
        handling: CacheHandling, now: Instant
    ) {
        guard facts.isSelective, entry.status == 200 else {
            return sendWhole(entry, handling: handling, isHead: facts.isHead, now: now)
        }
        let head = RenderedHead(entry)
        let selection = request.selection(
            facts, of: entry.metadata, head, rangesMax: settings.rangesMax)
        switch selection {
        case .whole: sendWhole(entry, handling: handling, isHead: facts.isHead, now: now)
        case .notModified:
            writer?.retain(entry)
            sendNotModified(head, entry.metadata, handling, now: now)
        case .preconditionFailed: sendProblem(.preconditionFailed)
        case .unsatisfiable: sendRangeNotSatisfiable(size: entry.metadata.size)
        case .parts(let ranges) where ranges.count == 1:
            let range = ranges[0]
            sendPartialHead(range, head, entry.metadata, handling, now: now)
            stream(entry, [.body(from: range.first, count: range.count)])
        case .parts(let ranges):
            sendMultipart(ranges, of: entry, handling, now: now)
        }
    }

    /// Sends a disk record from the page cache; if the socket accepts less than it reported, the
    /// rest is loaded into memory and verified.
    func send(_ record: SendfileRecord, now: Instant) {
        cacheResult = .disk
        context.touch(record.name, hash: record.hash, now: now)
        sendHead([], status: record.head.status, record.head, from: 0) {
            appendTail(record.facts, .hit(.disk), to: &$0, now: now)
        }
        bodyBytes = record.send(through: writer)
        guard bodyBytes < record.facts.size else { return finishResponse() }
        guard let entry = context.pageCache.entry(of: record) else { return abort() }
        stream(entry, [.body(from: bodyBytes, count: record.facts.size - bodyBytes)])
    }

    /// Sends 304 (RFC 9110 §15.4.5).
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

    /// Sends 416 with the complete length (RFC 9110 §15.5.17).
    func sendRangeNotSatisfiable(size: UInt64) {
        sendProblem(
            .rangeNotSatisfiable(size: size), fields: "Content-Range: bytes */\(size)\r\n")
    }

    /// Sends the head of a 206 with one range.
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

    /// Sends a 206 with several ranges (RFC 9110 §14.6).
    private func sendMultipart(
        _ ranges: [ByteRange], of entry: MemoryEntry, _ note: CacheHandling, now: Instant
    ) {
        let head = RenderedHead(entry)
        let parts = MultipartRanges(
            ranges: ranges, size: entry.metadata.size,
            contentType: head.slice(head.layout.contentTypeExtent),
            boundary: .random(in: .min ... .max))
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
    }

    /// Sends the head of a complete response whose body is being received.
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

    /// Sends a head of the first line, the fields of `head` from `start`, and what `more` appends.
    private func sendHead(
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

    /// Adds the Cache-Status line of a response that involved the origin; that of a hit is written
    /// with its head.
    private func addCacheStatus(_ note: CacheHandling, _ facts: EntryMetadata, now: Instant) {
        guard var status = note.status(facts, key: pendingKey, now: now) else { return }
        status.isFenced = !context.fence.isOpen(at: now)
        extraFieldLines += "Cache-Status: ".utf8
        status.append(to: &extraFieldLines)
        extraFieldLines += "\r\n".utf8
    }

    /// Replaces all extra lines of the response by the Nuthatch-Decision line.
    func setDecision(_ decision: DecisionTrace) {
        // The later decision is more informative.
        extraFieldLines = Array("Nuthatch-Decision: ".utf8)
        decision.append(to: &extraFieldLines)
        extraFieldLines += Array("\r\n".utf8)
    }

    // MARK: Body of an entry

    /// Sends `parts`, with body ranges from `entry`, as fast as the client reads them.
    private func stream(_ entry: MemoryEntry, _ parts: [ResponseBodyPart]) {
        isResponding = true
        entryBody = (entry, parts)
        proceed()
    }

    /// Sends the rest of ``entryBody`` as far as the client accepts it.
    func proceed() {
        while let (entry, parts) = entryBody, queuedBytes == 0 {
            guard let first = parts.first else {
                entryBody = nil
                finishResponse()
                resumeRequests()
                break
            }
            send(first, of: entry, before: parts.dropFirst())
        }
        writer?.flush()
    }

    /// Writes one part of a body, or its beginning.
    private func send(
        _ part: ResponseBodyPart, of entry: MemoryEntry, before rest: ArraySlice<ResponseBodyPart>
    ) {
        writer?.retain(entry)
        switch part {
        case .text(let text):
            writer?.send(body: text)
            entryBody = (entry, Array(rest))
        case .body(let offset, let count):
            let taken = min(count, UInt64(settings.transferBytesMax))
            slices.removeAll(keepingCapacity: true)
            entry.body.appendSlices(from: offset, count: Int(taken), to: &slices)
            for slice in slices { writer?.send(body: slice) }
            slices.removeAll(keepingCapacity: true)
            bodyBytes += taken
            let left: [ResponseBodyPart] =
                taken < count ? [.body(from: offset + taken, count: count - taken)] : []
            entryBody = (entry, left + rest)
        }
    }
}

/// A part of a response body: generated text, or a range of the entry's body in bytes.
enum ResponseBodyPart {
    case text(ByteBuffer)
    case body(from: UInt64, count: UInt64)
}

extension MultipartRanges {
    /// The parts of the content, in order.
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
