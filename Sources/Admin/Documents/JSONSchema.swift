/// Constructors of JSON Schema 2020-12, the dialect of OpenAPI 3.1.
enum JSONSchema {
    /// A property of an object.
    struct Property: Sendable {
        let name: String
        let schema: JSON
        let isRequired: Bool

        /// Returns a property that is always present.
        static func required(_ name: String, _ shape: JSON, _ meaning: String = "") -> Property {
            Property(name: name, schema: described(shape, meaning), isRequired: true)
        }

        static func optional(_ name: String, _ shape: JSON, _ meaning: String = "") -> Property {
            Property(name: name, schema: described(shape, meaning), isRequired: false)
        }
    }

    /// Returns the schema of an object with these properties and no others.
    static func object(_ properties: Property...) -> JSON { object(properties) }

    static func object(_ properties: [Property]) -> JSON {
        [
            "type": "object",
            "required": JSON(properties.filter(\.isRequired).map(\.name)),
            "properties": .object(properties.map { JSON.Member($0.name, $0.schema) }),
            "additionalProperties": false,
        ]
    }

    static func list(of element: JSON, count: ClosedRange<Int>? = nil) -> JSON {
        var members = [JSON.Member("type", "array"), JSON.Member("items", element)]
        if let count {
            members.append(JSON.Member("minItems", JSON(count.lowerBound)))
            members.append(JSON.Member("maxItems", JSON(count.upperBound)))
        }
        return .object(members)
    }

    /// Returns the schema of an object with arbitrary names whose values all have one schema.
    static func map(of element: JSON) -> JSON {
        ["type": "object", "additionalProperties": element]
    }

    static let string: JSON = ["type": "string"]
    static let boolean: JSON = ["type": "boolean"]
    /// A number from 0 to 1.
    static let fraction: JSON = ["type": "number", "minimum": 0, "maximum": 1]
    /// A count, or a duration; not negative.
    static let count: JSON = ["type": "integer", "minimum": 0]
    /// An identifier of 32 hexadecimal digits.
    static let id = text(pattern: "^[0-9a-f]{32}$")

    static func integer(_ range: ClosedRange<Int64>) -> JSON {
        [
            "type": "integer", "minimum": .number(range.lowerBound),
            "maximum": .number(range.upperBound),
        ]
    }

    /// Returns the schema of a text with `length` characters; its bytes are at least as many.
    static func text(length: ClosedRange<Int>, pattern: String? = nil) -> JSON {
        let members = [
            JSON.Member("type", "string"), JSON.Member("minLength", JSON(length.lowerBound)),
            JSON.Member("maxLength", JSON(length.upperBound)),
        ]
        return .object(members + (pattern.map { [JSON.Member("pattern", .text($0))] } ?? []))
    }

    static func text(pattern: String) -> JSON { ["type": "string", "pattern": .text(pattern)] }

    static func enumeration(_ choices: [String]) -> JSON {
        ["type": "string", "enum": JSON(choices)]
    }

    static func enumeration<Choice: CaseIterable & RawRepresentable<String>>(
        _: Choice.Type
    ) -> JSON {
        enumeration(Choice.allCases.map(\.rawValue))
    }

    static func anyOf(_ shapes: JSON...) -> JSON { ["anyOf": .list(shapes)] }

    static func nullable(_ shape: JSON) -> JSON { anyOf(shape, ["type": "null"]) }

    private static func described(_ shape: JSON, _ meaning: String) -> JSON {
        guard !meaning.isEmpty, case .object(let members) = shape else { return shape }
        return .object(members + [JSON.Member("description", .text(meaning))])
    }
}
