/// Bytes that are put together, read once and forgotten; the memory is kept and only grows.
@safe
struct ScratchBuffer: ~Copyable {
    private var start: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        unsafe start = .allocate(capacity: capacity)
    }

    deinit {
        unsafe start.deallocate()
    }

    /// The bytes; nothing may be appended while they are looked at.
    var bytes: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: start, count: count)
    }

    mutating func removeAll() {
        count = 0
    }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        if count == capacity { grow(by: 1) }
        unsafe start[count] = byte
        count &+= 1
    }

    @inline(__always)
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        if capacity &- count < bytes.count { grow(by: bytes.count) }
        unsafe (start + count).update(from: source, count: bytes.count)
        count &+= bytes.count
    }

    @inline(__always)
    mutating func append(_ text: StaticString) {
        unsafe append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inline(never)
    private mutating func grow(by more: Int) {
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        unsafe moved.update(from: start, count: count)
        unsafe start.deallocate()
        unsafe start = moved
        capacity = larger
    }
}
