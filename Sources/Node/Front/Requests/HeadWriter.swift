import Ground
import HTTPRules
import NIOCore
import Store

/// Puts the head of an answer together in a connection's buffer: what was rendered when the entry
/// was stored, then what differs from one answer to the next.
///
/// Writes through a pointer into room that was made beforehand and checks every write against it;
/// nothing is allocated.
@safe struct HeadWriter: ~Copyable {
    private let start: UnsafeMutableRawPointer
    private let room: Int
    private(set) var count = 0

    /// Room beside the rendered head for all lines that this file writes.
    static let linesBytesMax = 640

    /// - Parameter buffer: has room for everything that will be written.
    init(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let base = buffer.baseAddress else { preconditionFailure("a head without room") }
        unsafe start = base
        room = buffer.count
    }

    @inline(__always)
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(bytes.count <= room - count, "head past its room")
        guard let base = bytes.baseAddress else { return }
        unsafe (start + count).copyMemory(from: base, byteCount: bytes.count)
        count += bytes.count
    }

    @inline(__always)
    mutating func append(_ bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { unsafe append($0) }
    }

    @inline(__always)
    mutating func append(_ text: StaticString) {
        unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Eight bytes, the first of them the lowest.
    @inline(__always)
    mutating func append(digits: UInt64) {
        precondition(8 <= room - count, "head past its room")
        unsafe start.storeBytes(of: digits.littleEndian, toByteOffset: count, as: UInt64.self)
        count += 8
    }

    /// Decimal digits.
    @inline(__always)
    mutating func append(_ number: UInt64) {
        var digits: InlineArray<20, UInt8> = InlineArray(repeating: 0)
        var first = 20
        var left = number
        repeat {
            first -= 1
            digits[first] = 0x30 + UInt8(truncatingIfNeeded: left % 10)
            left /= 10
        } while left > 0
        precondition(20 - first <= room - count, "head past its room")
        while first < 20 {
            unsafe start.storeBytes(of: digits[first], toByteOffset: count, as: UInt8.self)
            count += 1
            first += 1
        }
    }
}

/// What an answer says of the connection it comes on.
enum ConnectionOption {
    /// Nothing: HTTP/1.1 that goes on.
    case none
    case close
    /// HTTP/1.0 that goes on because the client asked for it.
    case keepAlive
}

extension ByteBuffer {
    /// Makes room for `bytes` and writes a head into it.
    @inline(__always)
    mutating func writeHead(room bytes: Int, _ write: (inout HeadWriter) -> Void) {
        unsafe writeWithUnsafeMutableBytes(minimumWritableBytes: bytes) { pointer in
            var writer = unsafe HeadWriter(pointer)
            write(&writer)
            return writer.count
        }
    }
}

extension HeadWriter {
    /// An entry's rendered head from `start` to its end.
    @inline(__always)
    mutating func append(_ head: [UInt8], from start: Int) {
        unsafe head.withUnsafeBytes { bytes in
            unsafe append(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        }
    }

    /// `Age` in whole seconds (RFC 9111 §5.1).
    @inline(__always)
    mutating func appendAge(_ age: Interval) {
        append("Age: ")
        append(UInt64(max(0, age.seconds)))
        append("\r\n")
    }

    @inline(__always)
    mutating func append(_ note: ConnectionOption) {
        switch note {
        case .none: break
        case .close: append("Connection: close\r\n")
        case .keepAlive: append("Connection: keep-alive\r\n")
        }
    }
}

/// The buffers that answers' heads are written into; one set for all doors of a loop.
///
/// A door flushes before another one reads, so almost always the first buffer is free again, and
/// still in the processor's cache, when the next door begins. A buffer that a slow socket still
/// holds is left to it and replaced.
struct HeadBuffers {
    private var buffers: [ByteBuffer]
    private var next = 0

    private static let buffersMax = 16
    private static let capacityBytes = 1024

    init() {
        buffers = [ByteBufferAllocator().buffer(capacity: Self.capacityBytes)]
    }

    /// Writes with `write` into an empty buffer that was not given out since ``begin()``, as long
    /// as there are any.
    @inline(__always)
    mutating func with(_ write: (inout ByteBuffer) -> Void) -> ByteBuffer {
        if next == buffers.count {
            if buffers.count < Self.buffersMax {
                buffers.append(ByteBufferAllocator().buffer(capacity: Self.capacityBytes))
            } else {
                next = 0
            }
        }
        buffers[next].clear()
        write(&buffers[next])
        defer { next += 1 }
        return buffers[next]
    }

    /// A door begins to answer; what others were given is flushed.
    @inline(__always)
    mutating func begin() {
        next = 0
    }
}

/// The `Date` line of an answer, written once a second for all answers of a loop.
struct DateLine {
    /// `Date: `, the date as RFC 9110 §5.6.7 prefers it, and CRLF.
    private(set) var bytes: [UInt8] = []
    private var shown: WallTime

    init(_ now: WallTime) {
        shown = now
        write()
    }

    mutating func update(_ now: WallTime) {
        guard now != shown else { return }
        shown = now
        write()
    }

    private mutating func write() {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: "Date: ".utf8)
        HTTPDate.append(shown, to: &bytes)
        bytes.append(contentsOf: "\r\n".utf8)
    }
}
