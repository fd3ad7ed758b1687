import NIOCore

/// Reads the body of a request as its framing says: by length, by chunks, or none.
struct OriginBodyReader {
    private enum State: Equatable {
        case length(left: Int)
        case chunkSize
        case chunk(left: Int)
        case chunkEnd
        case trailer
        case done
        case broken
    }

    private var state: State
    private var record: BodyRecord
    private var line: [UInt8] = []
    private var trailers = HeaderLines()

    init(of fields: HeaderLines, record: BodyRecord) {
        self.record = record
        if fields["Transfer-Encoding"]?.lowercased() == "chunked" {
            state = .chunkSize
        } else {
            let length = fields["Content-Length"].flatMap { Int($0) } ?? 0
            state = length == 0 ? .done : .length(left: length)
        }
    }

    var isDone: Bool { state == .done }
    /// Whether its framing cannot be read.
    var isBroken: Bool { state == .broken }

    /// What is known of it by now.
    var body: OriginBody {
        var response = Response()
        record.finish(&response)
        return OriginBody(
            byteCount: response.bodyByteCount, bytes: response.body,
            isAsExpected: response.isAsExpected, isComplete: isDone, trailers: trailers)
    }

    /// Takes what belongs to this body and leaves what follows it.
    mutating func read(_ buffer: inout ByteBuffer) {
        while buffer.readableBytes > 0 {
            switch state {
            case .length(let left):
                let rest = take(&buffer, left)
                state = rest == 0 ? .done : .length(left: rest)
            case .chunk(let left):
                let rest = take(&buffer, left)
                state = rest == 0 ? .chunkEnd : .chunk(left: rest)
            case .chunkSize, .chunkEnd, .trailer:
                guard let text = takeLine(&buffer) else { return }
                lineCame(text)
            case .done, .broken: return
            }
        }
    }

    private mutating func take(_ buffer: inout ByteBuffer, _ left: Int) -> Int {
        let count = min(left, buffer.readableBytes)
        if let piece = buffer.readSlice(length: count) { record.take(piece) }
        return left - count
    }

    private mutating func takeLine(_ buffer: inout ByteBuffer) -> String? {
        while let byte: UInt8 = buffer.readInteger() {
            line.append(byte)
            guard byte == 0x0A else { continue }
            let isWhole = line.suffix(2) == [0x0D, 0x0A]
            let text = String(decoding: line.dropLast(2), as: UTF8.self)
            line = []
            if !isWhole { state = .broken }
            return isWhole ? text : nil
        }
        return nil
    }

    private mutating func lineCame(_ text: String) {
        switch state {
        case .chunkSize:
            let size = Int(text.prefix { $0 != ";" }, radix: 16)
            state = size.map { $0 == 0 ? .trailer : .chunk(left: $0) } ?? .broken
        case .chunkEnd: state = text.isEmpty ? .chunkSize : .broken
        case .trailer where text.isEmpty: state = .done
        case .trailer:
            if let field = HeaderLines.parse(text) { trailers.lines.append(field) }
        default: break
        }
    }
}
