import NIOCore

/// Reads one response, or the body of a request, out of bytes as they come; strict, and independent
/// of the product's codec.
struct ResponseReader {
    /// What the reader waits for.
    private enum State: Equatable {
        case head
        case length(left: Int)
        case chunkSize
        case chunk(left: Int)
        case chunkEnd
        case trailer
        case untilClose
        case done
    }

    private(set) var response = Response()
    private var state = State.head
    private var line: [UInt8] = []
    private var lines: [String] = []
    private var recorder: BodyRecorder
    private let isHead: Bool

    private static let lineBytesMax = 64 * 1_024

    /// A reader of the answer to a request.
    ///
    /// - Parameters:
    ///   - method: The request's method; an answer to HEAD has no body.
    ///   - recorder: What to do with the body.
    init(method: String, recorder: BodyRecorder) {
        isHead = method == "HEAD"
        self.recorder = recorder
    }

    /// A reader of the body of a request whose head has these fields: by length, chunks, or none.
    init(bodyOf fields: HeaderFields, recorder: BodyRecorder) {
        isHead = false
        self.recorder = recorder
        if fields["Transfer-Encoding"]?.lowercased() == "chunked" {
            state = .chunkSize
        } else if let length = fields["Content-Length"].flatMap({ Int($0) }), length > 0 {
            state = .length(left: length)
        } else {
            finish(.complete)
        }
    }

    /// Whether the response has come to its end.
    var isDone: Bool { state == .done }
    /// Whether the head is complete.
    var hasHead: Bool { response.status != 0 }
    /// Body bytes so far.
    var bodyByteCount: Int { recorder.byteCount }
    /// Whether it came to its end as its framing said.
    var isComplete: Bool { response.ending == .complete }

    /// What is known by now of a request's body.
    var body: OriginRequestBody {
        var known = response
        recorder.finish(&known)
        return OriginRequestBody(
            byteCount: known.bodyByteCount, bytes: known.body, isAsExpected: known.isAsExpected,
            isComplete: isComplete, trailers: known.trailers)
    }

    /// Takes what belongs to this response from the buffer and leaves what follows it.
    mutating func read(_ buffer: inout ByteBuffer) {
        while state != .done, buffer.readableBytes > 0 {
            switch state {
            case .length(let left):
                let rest = takeBody(&buffer, left)
                state = .length(left: rest)
                if rest == 0 { finish(.complete) }
            case .chunk(let left):
                let rest = takeBody(&buffer, left)
                state = rest == 0 ? .chunkEnd : .chunk(left: rest)
            case .untilClose:
                _ = takeBody(&buffer, buffer.readableBytes)
            case .head, .chunkSize, .chunkEnd, .trailer:
                guard let text = takeLine(&buffer) else { return }
                lineReceived(text)
            case .done: return
            }
        }
    }

    /// The connection ended, or the reader gives up: the response is what it is.
    mutating func end(_ ending: ResponseEnding) {
        guard state != .done else { return }
        // Where nothing says so, nobody can tell the end of the body from a connection that is left
        // idle.
        let isAnnounced =
            response.version == "HTTP/1.0"
            || response.fields.all("Connection").contains { $0.lowercased() == "close" }
        finish(
            state == .untilClose && ending == .truncated && isAnnounced ? .closeDelimited : ending)
    }

    private mutating func finish(_ ending: ResponseEnding) {
        state = .done
        response.ending = ending
        recorder.finish(&response)
    }

    private mutating func takeBody(_ buffer: inout ByteBuffer, _ left: Int) -> Int {
        let count = min(left, buffer.readableBytes)
        if let piece = buffer.readSlice(length: count) { recorder.append(piece) }
        return left - count
    }

    /// A whole line without its CRLF; nil until there is one, or if it is none.
    private mutating func takeLine(_ buffer: inout ByteBuffer) -> String? {
        while let byte: UInt8 = buffer.readInteger() {
            line.append(byte)
            guard byte == 0x0A else { continue }
            let text = line.dropLast(2)
            guard line.count >= 2, line[line.count - 2] == 0x0D, !text.contains(0x0D) else {
                finish(.malformed("a line that does not end with CRLF"))
                return nil
            }
            line = []
            return String(decoding: text, as: UTF8.self)
        }
        if line.count > Self.lineBytesMax { finish(.malformed("a line without end")) }
        return nil
    }

    private mutating func lineReceived(_ text: String) {
        switch state {
        case .head: text.isEmpty ? headReceived() : lines.append(text)
        case .chunkSize: chunkSizeReceived(text)
        case .chunkEnd where text.isEmpty: state = .chunkSize
        case .chunkEnd: finish(.malformed("bytes behind a chunk"))
        case .trailer: trailerReceived(text)
        default: break
        }
    }

    private mutating func chunkSizeReceived(_ text: String) {
        let digits = text.prefix { $0 != ";" }
        guard !digits.isEmpty, digits.allSatisfy(\.isHexDigit), let size = Int(digits, radix: 16)
        else { return finish(.malformed("chunk size \(text)")) }
        state = size == 0 ? .trailer : .chunk(left: size)
    }

    private mutating func trailerReceived(_ text: String) {
        if text.isEmpty { return finish(.complete) }
        guard let field = HeaderFields.parse(text) else {
            return finish(.malformed("trailer \(text)"))
        }
        response.trailers.lines.append(field)
    }

    private mutating func headReceived() {
        let words = (lines.first ?? "").split(
            separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        let fields = lines.dropFirst().map(HeaderFields.parse)
        guard words.count == 3, words[0] == "HTTP/1.1" || words[0] == "HTTP/1.0",
            words[1].utf8.count == 3, let status = Int(words[1]), status >= 100,
            fields.allSatisfy({ $0 != nil })
        else { return finish(.malformed("head \(lines)")) }
        lines = []
        if (100..<200).contains(status), status != 101 {
            response.interim.append(status)
            response.interimFields.append(HeaderFields(fields.compactMap { $0 }))
            return
        }
        response.version = String(words[0])
        response.status = status
        response.fields = HeaderFields(fields.compactMap { $0 })
        determineFraming()
    }

    /// RFC 9112 §6.3, with everything ambiguous refused.
    private mutating func determineFraming() {
        let codings = response.fields.all("Transfer-Encoding")
        let lengths = response.fields.all("Content-Length")
        let length = lengths.first.flatMap { $0.allSatisfy(\.isNumber) ? Int($0) : nil }
        guard lengths.count <= 1, lengths.isEmpty || length != nil else {
            return finish(.malformed("Content-Length \(lengths)"))
        }
        guard codings.isEmpty || (codings == ["chunked"] && lengths.isEmpty) else {
            return finish(.malformed("Transfer-Encoding \(codings), Content-Length \(lengths)"))
        }
        let status = response.status
        if isHead || status == 204 || status == 304 { return finish(.complete) }
        if !codings.isEmpty {
            state = .chunkSize
        } else if let length {
            state = .length(left: length)
            if length == 0 { finish(.complete) }
        } else {
            state = .untilClose
        }
    }
}

/// What a reader does with the bytes of a body: keep them, compare them with an image, or count.
struct BodyRecorder {
    private(set) var byteCount = 0
    private(set) var isAsExpected = true
    private var kept: [UInt8]?
    private let expected: TestImage?

    /// A record that keeps every byte.
    static var keeping: BodyRecorder { BodyRecorder(kept: [], expected: nil) }

    /// A record that compares with an image, or only counts, and keeps nothing.
    static func comparing(_ image: TestImage?) -> BodyRecorder {
        BodyRecorder(kept: nil, expected: image)
    }

    private init(kept: [UInt8]?, expected: TestImage?) {
        self.kept = kept
        self.expected = expected
    }

    mutating func append(_ piece: ByteBuffer) {
        if let expected, isAsExpected { isAsExpected = expected.holds(piece, at: byteCount) }
        kept?.append(contentsOf: piece.readableBytesView)
        byteCount += piece.readableBytes
    }

    /// Writes what is known into a response.
    func finish(_ response: inout Response) {
        response.body = kept
        response.bodyByteCount = byteCount
        response.isAsExpected = isAsExpected
    }
}
