import CNgHTTP2
import Ground
import HTTPRules

/// The fields of a head as nghttp2 takes them, pointing into the head's own text.
///
/// nghttp2 copies them when they are submitted, and writes names in lower case then.
@safe
struct FieldVector: ~Copyable {
    private var start: UnsafeMutablePointer<nghttp2_nv>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        unsafe start = .allocate(capacity: capacity)
    }

    deinit {
        unsafe start.deallocate()
    }

    var fields: UnsafeMutablePointer<nghttp2_nv> { unsafe start }

    mutating func removeAll() {
        count = 0
    }

    @inline(__always)
    mutating func append(
        _ name: UnsafePointer<UInt8>, _ nameCount: Int, _ value: UnsafePointer<UInt8>,
        _ valueCount: Int, flags: UInt8 = 0
    ) {
        if count == capacity { grow() }
        unsafe (start + count).initialize(
            to: nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name),
                value: UnsafeMutablePointer(mutating: value),
                namelen: nameCount, valuelen: valueCount, flags: flags))
        count &+= 1
    }

    mutating func append(
        _ name: StaticString, _ value: UnsafePointer<UInt8>, _ valueCount: Int
    ) {
        unsafe append(name.utf8Start, name.utf8CodeUnitCount, value, valueCount)
    }

    /// Appends the field lines of `text` from the offset `position` up to an empty line or the end,
    /// without those that belong to a connection of HTTP/1.1 (RFC 9113 §8.2.2).
    ///
    /// Of a request neither Host, which is `:authority`, nor TE with more than `trailers`.
    mutating func appendLines(
        _ text: Span<UInt8>, from position: Int, isRequest: Bool = false
    ) {
        var position = position
        unsafe text.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return }
            while case .line(let line, let next) = FieldLineScan.next(
                text, at: position, end: text.count)
            {
                position = next
                if Self.isConnectionSpecific(text, line) { continue }
                if isRequest, line.id == .host || line.id == .te,
                    line.id == .host || !text.holdsIgnoringCase("trailers", at: line.value)
                {
                    continue
                }
                unsafe append(
                    base + Int(line.nameStart), Int(line.nameCount),
                    base + Int(line.valueStart), Int(line.valueCount),
                    flags: Self.isNew(line) ? Self.notIndexed : 0)
            }
        }
    }

    /// True for fields whose value no other message has: in the table of HPACK they would only push
    /// out what comes again (RFC 7541 §6.2).
    @inline(__always)
    private static func isNew(_ line: LineMark) -> Bool {
        line.id == .xRequestID || line.id == .traceparent
    }

    private static let notIndexed = UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)

    @inline(__always)
    private static func isConnectionSpecific(_ text: Span<UInt8>, _ line: LineMark) -> Bool {
        switch line.id {
        case .connection, .keepAlive, .transferEncoding, .upgrade: true
        case .other:
            line.nameCount == 16
                && text.holdsIgnoringCase(
                    "proxy-connection", at: Int(line.nameStart)..<Int(line.nameStart) + 16)
        default: false
        }
    }

    @inline(never)
    private mutating func grow() {
        let moved = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: capacity * 2)
        unsafe moved.update(from: start, count: count)
        unsafe start.deallocate()
        unsafe start = moved
        capacity *= 2
    }
}
