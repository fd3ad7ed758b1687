import Ground
import HTTPRules
import NIOCore
import Store

/// Composer of a response head in a connection's buffer: what was rendered when the entry was
/// stored, then what differs between responses.
///
/// Writes through a pointer into memory reserved beforehand, and checks the bounds of every write;
/// nothing is allocated.
@safe struct HeadWriter: ~Copyable {
    private let start: UnsafeMutableRawPointer
    /// Size of the buffer in bytes.
    private let room: Int
    /// Bytes written so far.
    private(set) var count = 0

    /// Space required beside rendered lines for all lines that differ between responses, in bytes.
    static let linesBytesMax = 640

    /// Creates a writer into `buffer`.
    ///
    /// - Parameter buffer: must have space for everything that will be written.
    init(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let base = buffer.baseAddress else { preconditionFailure("a head without room") }
        unsafe start = base
        room = buffer.count
    }

    /// Appends bytes.
    ///
    /// - Precondition: they fit into the buffer.
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

    /// Appends eight bytes, lowest first.
    @inline(__always)
    mutating func append(digits: UInt64) {
        precondition(8 <= room - count, "head past its room")
        unsafe start.storeBytes(of: digits.littleEndian, toByteOffset: count, as: UInt64.self)
        count += 8
    }

    /// Appends a number in decimal digits.
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

/// The Connection field of a response.
enum ConnectionOption {
    /// No field: a persistent HTTP/1.1 connection.
    case none
    case close
    /// `keep-alive`: an HTTP/1.0 connection that the client wants persistent.
    case keepAlive
}

extension ByteBuffer {
    /// Writes a head of at most `bytes` bytes.
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
    /// Appends a rendered head from `start` to its end.
    @inline(__always)
    mutating func append(_ head: [UInt8], from start: Int) {
        unsafe head.withUnsafeBytes { bytes in
            unsafe append(UnsafeRawBufferPointer(rebasing: bytes[start...]))
        }
    }

    /// Appends `Age` in whole seconds (RFC 9111 §5.1).
    @inline(__always)
    mutating func appendAge(_ age: Interval) {
        append("Age: ")
        append(UInt64(max(0, age.seconds)))
        append("\r\n")
    }

    /// Appends the Connection field, if there is one.
    @inline(__always)
    mutating func append(_ note: ConnectionOption) {
        switch note {
        case .none: break
        case .close: append("Connection: close\r\n")
        case .keepAlive: append("Connection: keep-alive\r\n")
        }
    }
}

/// Buffers for response heads, shared by all handlers of a loop.
///
/// A handler flushes before another one reads, so the first buffer is almost always free, and still
/// in the processor's cache, when the next handler starts. A buffer that a slow socket still
/// retains is abandoned to it and replaced.
struct HeadBuffers {
    private var buffers: [ByteBuffer]
    /// Index of the buffer to use next.
    private var next = 0

    /// Maximum number of buffers per loop.
    private static let buffersMax = 16
    /// Initial capacity of a buffer, in bytes.
    private static let capacityBytes = 1024

    /// Creates one buffer.
    init() {
        buffers = [ByteBufferAllocator().buffer(capacity: Self.capacityBytes)]
    }

    /// Returns a buffer filled by `write`, one not used since ``begin()`` as long as there are any.
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

    /// Makes all buffers available again; called when a handler starts, after the heads of others
    /// were flushed.
    @inline(__always)
    mutating func begin() {
        next = 0
    }
}

/// The `Date` field line, rendered once a second for all responses of a loop.
struct DateLine {
    /// `Date: `, the date in the format preferred by RFC 9110 §5.6.7, and CRLF.
    private(set) var bytes: [UInt8] = []
    /// The second that ``bytes`` show.
    private var shown: WallTime

    /// Creates the line for `now`.
    init(_ now: WallTime) {
        shown = now
        write()
    }

    /// Renders the line again if the second has changed.
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
