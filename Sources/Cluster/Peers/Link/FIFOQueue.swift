/// A first-in, first-out queue with amortised constant time per call.
package struct FIFOQueue<Element: Sendable>: Sendable {
    /// The elements; those before ``head`` were removed.
    private var elements: [Element?] = []
    private var head = 0

    /// Creates an empty queue.
    package init() {}

    var count: Int { elements.count - head }
    /// True if the queue has no elements.
    package var isEmpty: Bool { head == elements.count }

    /// Appends an element.
    package mutating func append(_ element: Element) {
        elements.append(element)
    }

    /// Removes and returns the oldest element; `nil` if there is none.
    package mutating func takeFirst() -> Element? {
        guard !isEmpty else { return nil }
        let first = elements[head]
        elements[head] = nil
        head += 1
        // Compact when the removed slots outnumber the elements.
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

/// A queue of frames to send.
struct FrameQueue: Sendable {
    private var frames = FIFOQueue<[UInt8]>()
    /// The bytes of all queued frames, including a fixed overhead per frame.
    private(set) var bytesCount = 0

    /// The overhead of a frame in bytes: its array and its slot.
    private static let overheadBytes = 64

    mutating func append(_ frame: [UInt8]) {
        frames.append(frame)
        bytesCount += frame.count + Self.overheadBytes
    }

    /// Removes and returns the oldest frame; `nil` if there is none.
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
