package import Ground
package import HTTPRules

/// The location of a field line, as kept while a head is parsed.
///
/// Plain numbers, because the initialisers of ``FieldLine`` and ``Extent`` are calls into other
/// modules, which most lines never need.
struct FieldLineLocation {
    var id: FieldName
    var nameStart: UInt32
    var nameCount: UInt32
    var valueStart: UInt32
    var valueCount: UInt32

    var line: FieldLine {
        FieldLine(
            id: id, name: Extent(start: Int(nameStart), count: Int(nameCount)),
            value: valueExtent)
    }

    var valueExtent: Extent { Extent(start: Int(valueStart), count: Int(valueCount)) }

    var value: Range<Int> {
        Int(valueStart)..<Int(valueStart) &+ Int(valueCount)
    }
}

/// The field lines of one head at a time, in the order received; memory is allocated once.
///
/// Sendable because the table is the only owner of its memory.
@safe
package struct FieldTable: ~Copyable, @unchecked Sendable {
    /// The lines; only the first ``count`` belong to the current head and may be read.
    ///
    /// Raw memory, because an array checks for shared storage at each append.
    private let locations: UnsafeMutablePointer<FieldLineLocation>
    private let capacity: Int
    /// The number of lines of the current head.
    package private(set) var count = 0
    /// A bit set of the names that occur, indexed by raw value.
    private(set) var bits: UInt64 = 0

    /// Allocates memory for at most `fieldsMax` lines.
    package init(fieldsMax: Int) {
        precondition(fieldsMax >= 0)
        capacity = fieldsMax
        unsafe locations = .allocate(capacity: fieldsMax)
    }

    deinit {
        unsafe locations.deallocate()
    }

    /// The names that occur; ``FieldName/other`` stands for all names without a case.
    package var present: FieldSet { FieldSet(bits: bits) }

    /// Returns the line at `index`, which must be less than ``count``.
    package subscript(index: Int) -> FieldLine {
        precondition(index < count)
        return unsafe locations[index].line
    }

    /// Returns the value of the first line with this name; `nil` if there is none.
    package func first(_ name: FieldName) -> Extent? {
        guard contains(name) else { return nil }
        for index in 0..<count where unsafe locations[index].id == name {
            return unsafe locations[index].valueExtent
        }
        return nil
    }

    /// Returns true if a line has this name.
    @inline(__always)
    package func contains(_ name: FieldName) -> Bool {
        bits & Self.bit(name) != 0
    }

    /// Returns a copy of the lines that outlives the current head.
    package func copy() -> [FieldLine] {
        (0..<count).map { index in self[index] }
    }

    /// Removes all lines, for another head.
    @inline(__always)
    mutating func removeAll() {
        count = 0
        bits = 0
    }

    /// Appends a line; returns false if the table is full.
    @inline(__always)
    mutating func append(_ mark: FieldLineLocation) -> Bool {
        guard count < capacity else { return false }
        unsafe locations.advanced(by: count).initialize(to: mark)
        count &+= 1
        bits |= Self.bit(mark.id)
        return true
    }

    /// Returns the bit of a name in ``FieldSet``.
    ///
    /// The raw values count from 0 in the order of the cases, so the case's byte equals the raw
    /// value; reading `rawValue` would be a call into another module for each line.
    @inline(__always)
    private static func bit(_ name: FieldName) -> UInt64 {
        1 &<< UInt64(unsafe unsafeBitCast(name, to: UInt8.self))
    }
}
