import Ground

/// The held records of one stream, by number.
///
/// A page has up to 256 records with their bytes in one array, so that a million small records need
/// some thousand arrays. Most records arrive in order; others are inserted at their position.
struct RecordTable: Sendable {
    /// The metadata of a record.
    struct Slot: Sendable {
        let number: UInt64
        /// The range of its content in the page.
        fileprivate let content: Range<UInt32>
        let hash: UInt64
        /// The time of arrival.
        let heldSince: Instant

        fileprivate var extent: Range<Int> { Int(content.lowerBound)..<Int(content.upperBound) }
    }

    private struct Page: Sendable {
        let index: UInt64
        var bytes: [UInt8] = []
        /// The slots, ascending by number.
        var slots: [Slot] = []

        func content(of slot: Int) -> [UInt8] {
            Array(bytes[slots[slot].extent])
        }
    }

    /// The pages, ascending by index; none is empty.
    private var pages: [Page] = []
    private(set) var count = 0
    /// The size of the contents in bytes, plus ``slotBytes`` for each record.
    private(set) var bytesCount = 0

    /// The overhead of a record in bytes.
    static let slotBytes = 64

    var isEmpty: Bool { count == 0 }
    var first: Slot? { pages.first?.slots.first }

    /// Adds a record, whose number must not be held.
    mutating func insert(_ record: InvalidationRecord, at now: Instant) {
        let number = record.id.number
        let index = number >> 8
        let place = pages.partitionPoint { $0.index < index }
        if place == pages.count || pages[place].index != index {
            pages.insert(Page(index: index), at: place)
        }
        let start = UInt32(pages[place].bytes.count)
        let slot = Slot(
            number: number, content: start..<(start + UInt32(record.encodedContent.count)),
            hash: record.hash, heldSince: now)
        pages[place].bytes += record.encodedContent
        let position = pages[place].slots.partitionPoint { $0.number < number }
        pages[place].slots.insert(slot, at: position)
        count += 1
        bytesCount += record.encodedContent.count + Self.slotBytes
    }

    /// Returns the slot of a record, or `nil` if it is not held.
    func slot(_ number: UInt64) -> Slot? {
        guard let (page, slot) = location(of: number) else { return nil }
        return pages[page].slots[slot]
    }

    /// Returns the slots with the greatest numbers among those whose content satisfies `isWanted`,
    /// at most `countMax`, descending.
    func last(_ countMax: Int, where isWanted: (Span<UInt8>) -> Bool) -> [Slot] {
        var found: [Slot] = []
        for page in pages.reversed() {
            for slot in page.slots.reversed() {
                guard found.count < countMax else { return found }
                if isWanted(page.bytes.span.extracting(slot.extent)) { found.append(slot) }
            }
        }
        return found
    }

    /// Returns the content of a record, or `nil` if it is not held.
    func content(_ number: UInt64) -> [UInt8]? {
        guard let (page, slot) = location(of: number) else { return nil }
        return pages[page].content(of: slot)
    }

    /// Returns the lowest held number in `range`, or `nil` if none is held.
    func firstNumber(in range: ClosedRange<UInt64>) -> UInt64? {
        var page = pages.partitionPoint { $0.index < range.lowerBound >> 8 }
        while page < pages.count {
            let slot = pages[page].slots.partitionPoint { $0.number < range.lowerBound }
            if slot < pages[page].slots.count {
                let number = pages[page].slots[slot].number
                return number <= range.upperBound ? number : nil
            }
            page += 1
        }
        return nil
    }

    /// Removes and returns the number and content of the record with the lowest number; `nil` if
    /// the table is empty.
    mutating func removeFirst() -> (number: UInt64, content: [UInt8])? {
        guard let slot = first else { return nil }
        let content = pages[0].content(of: 0)
        pages[0].slots.removeFirst()
        if pages[0].slots.isEmpty { pages.removeFirst() }
        count -= 1
        bytesCount -= content.count + Self.slotBytes
        return (slot.number, content)
    }

    private func location(of number: UInt64) -> (page: Int, slot: Int)? {
        let page = pages.partitionPoint { $0.index < number >> 8 }
        guard page < pages.count, pages[page].index == number >> 8 else { return nil }
        let slot = pages[page].slots.partitionPoint { $0.number < number }
        guard slot < pages[page].slots.count, pages[page].slots[slot].number == number else {
            return nil
        }
        return (page, slot)
    }
}
