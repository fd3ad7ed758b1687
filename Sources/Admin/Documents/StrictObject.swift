/// An object of which every key is known and every value is of the wanted type; what is not is told
/// by its place.
struct StrictObject {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    private let container: KeyedDecodingContainer<Name>
    /// Where it stands in the body: `targets[3]`, or empty for the body itself.
    let place: String
    /// Its keys, in the order of ``allowed``.
    let names: [String]

    /// - Throws: ``BodyFault`` if there is no object, or one with a key that is not `allowed`.
    init(_ decoder: any Decoder, allowed: [String]) throws {
        place = BodyFault.place(decoder.codingPath)
        do {
            container = try decoder.container(keyedBy: Name.self)
        } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
            throw BodyFault.type(place, wanted: "an object")
        }
        let present = Set(container.allKeys.map(\.stringValue))
        // The order of a decoder's keys is anybody's guess.
        if let unknown = present.subtracting(allowed).min() {
            throw BodyFault.unknown(place, key: unknown, allowed: allowed)
        }
        names = allowed.filter(present.contains)
    }

    func place(of name: String) -> String { place.isEmpty ? name : "\(place).\(name)" }

    /// Nil if there is no such key.
    func string(_ name: String) throws -> String? {
        try value(name, wanted: "a string") { try container.decode(String.self, forKey: $0) }
    }

    func integer(_ name: String) throws(BodyFault) -> Int64? {
        guard names.contains(name) else { return nil }
        do {
            return try container.decode(Int64.self, forKey: Name(stringValue: name))
        } catch {
            // For a fraction, and for more than the type holds, decoders have errors of their own.
            throw BodyFault.type(place(of: name), wanted: "a whole number")
        }
    }

    /// False if it is `false`, or there is no such key.
    func isTrue(_ name: String) throws -> Bool {
        try value(name, wanted: "true") { try container.decode(Bool.self, forKey: $0) } ?? false
    }

    func list(_ name: String) throws -> (any UnkeyedDecodingContainer)? {
        try value(name, wanted: "an array") { try container.nestedUnkeyedContainer(forKey: $0) }
    }

    private func value<Value>(
        _ name: String, wanted: String, _ decode: (Name) throws -> Value
    ) throws -> Value? {
        guard names.contains(name) else { return nil }
        do {
            return try decode(Name(stringValue: name))
        } catch DecodingError.typeMismatch, DecodingError.valueNotFound {
            throw BodyFault.type(place(of: name), wanted: wanted)
        }
    }
}
