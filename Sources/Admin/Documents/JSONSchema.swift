/// Shapes of JSON, as JSON Schema 2020-12 has them, which OpenAPI 3.1 uses.
enum JSONSchema {
    /// A property of an object.
    struct Property: Sendable {
        let name: String
        let schema: JSON
        let isRequired: Bool

        /// One that is always there.
        static func required(_ name: String, _ shape: JSON, _ meaning: String = "") -> Property {
            Property(name: name, schema: described(shape, meaning), isRequired: true)
        }

        static func optional(_ name: String, _ shape: JSON, _ meaning: String = "") -> Property {
            Property(name: name, schema: described(shape, meaning), isRequired: false)
        }
    }

    /// An object with these properties and no others.
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

    /// An object whose members are all of one shape, whatever their names.
    static func map(of element: JSON) -> JSON {
        ["type": "object", "additionalProperties": element]
    }

    static let string: JSON = ["type": "string"]
    static let boolean: JSON = ["type": "boolean"]
    /// From 0 to 1.
    static let fraction: JSON = ["type": "number", "minimum": 0, "maximum": 1]
    /// A count, or a length of time.
    static let count: JSON = ["type": "integer", "minimum": 0]
    /// 32 hexadecimal digits.
    static let id = text(pattern: "^[0-9a-f]{32}$")

    static func integer(_ range: ClosedRange<Int64>) -> JSON {
        [
            "type": "integer", "minimum": .number(range.lowerBound),
            "maximum": .number(range.upperBound),
        ]
    }

    /// Text of so many characters; bytes are never fewer.
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

    static func anyOf(_ shapes: JSON...) -> JSON { ["anyOf": .list(shapes)] }

    static func nullable(_ shape: JSON) -> JSON { anyOf(shape, ["type": "null"]) }

    private static func described(_ shape: JSON, _ meaning: String) -> JSON {
        guard !meaning.isEmpty, case .object(let members) = shape else { return shape }
        return .object(members + [JSON.Member("description", .text(meaning))])
    }
}
