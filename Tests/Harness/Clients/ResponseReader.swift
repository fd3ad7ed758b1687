import NIOCore

/// An incremental parser of one response, or of one request body.
///
/// It is strict and independent of the product's codec.
struct ResponseReader {
    /// The element that the parser expects next.
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

    /// Creates a reader of the response to a request.
    ///
    /// - Parameters:
    ///   - method: The request's method; a response to HEAD has no body.
    ///   - recorder: Records the body.
    init(method: String, recorder: BodyRecorder) {
        isHead = method == "HEAD"
        self.recorder = recorder
    }

    /// Creates a reader of the body of a request with these fields: by length, by chunks, or empty.
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

    /// True if the response has ended.
    var isDone: Bool { state == .done }
    /// True if the head is complete.
    var hasHead: Bool { response.status != 0 }
    /// Body bytes received so far.
    var bodyByteCount: Int { recorder.byteCount }
    /// True if the response ended as its framing says.
    var isComplete: Bool { response.ending == .complete }

    /// The state of a request's body.
    var body: OriginRequestBody {
        var known = response
        recorder.finish(&known)
        return OriginRequestBody(
            byteCount: known.bodyByteCount, bytes: known.body, isAsExpected: known.isAsExpected,
            isComplete: isComplete, trailers: known.trailers)
    }

    /// Consumes the bytes of this response from the buffer and leaves those that follow.
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

    /// Ends the response because the connection ended or the reader gives up.
    mutating func end(_ ending: ResponseEnding) {
        guard state != .done else { return }
        // Without announced framing, the end of the body looks like an idle connection.
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

    /// Removes a complete line and returns it without its CRLF; `nil` if none is complete or valid.
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

    /// Determines the framing by RFC 9112 §6.3, and refuses everything ambiguous.
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

/// Records body bytes: keeps them, compares them with an image, or counts them.
struct BodyRecorder {
    private(set) var byteCount = 0
    private(set) var isAsExpected = true
    private var kept: [UInt8]?
    private let expected: TestImage?

    /// A recorder that keeps every byte.
    static var keeping: BodyRecorder { BodyRecorder(kept: [], expected: nil) }

    /// Returns a recorder that compares with an image, or only counts, and keeps nothing.
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

    /// Writes the recorded values into a response.
    func finish(_ response: inout Response) {
        response.body = kept
        response.bodyByteCount = byteCount
        response.isAsExpected = isAsExpected
    }
}
