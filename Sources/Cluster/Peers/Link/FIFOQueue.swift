/// First in, first out; each call takes constant time over many.
package struct FIFOQueue<Element: Sendable>: Sendable {
    /// Those before ``head`` are gone.
    private var elements: [Element?] = []
    private var head = 0

    package init() {}

    var count: Int { elements.count - head }
    package var isEmpty: Bool { head == elements.count }

    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// The oldest, taken out.
    package mutating func takeFirst() -> Element? {
        guard !isEmpty else { return nil }
        let first = elements[head]
        elements[head] = nil
        head += 1
        // What is gone is let go of when it is more than what waits.
        if head > count {
            elements.removeFirst(head)
            head = 0
        }
        return first
    }

    mutating func removeAll() {
        elements.removeAll()
        head = 0
    }
}

/// Frames that wait to be sent.
struct FrameQueue: Sendable {
    private var frames = FIFOQueue<[UInt8]>()
    /// Bytes that wait, with what their keeping takes.
    private(set) var bytesCount = 0

    /// What a frame takes beside its bytes: its array and its place.
    private static let overheadBytes = 64

    mutating func append(_ frame: [UInt8]) {
        frames.append(frame)
        bytesCount += frame.count + Self.overheadBytes
    }

    /// The oldest, taken out.
    mutating func takeFirst() -> [UInt8]? {
        guard let frame = frames.takeFirst() else { return nil }
        bytesCount -= frame.count + Self.overheadBytes
        return frame
    }

    mutating func removeAll() {
        frames.removeAll()
        bytesCount = 0
    }
}
