/// A JSON Schema 2020-12, the dialect of OpenAPI 3.1.
package struct JSONSchema: Sendable {
    /// The schema as it stands in the OpenAPI document.
    package let json: JSON

    init(_ json: JSON) {
        self.json = json
    }

    /// A property of an object.
    struct Property: Sendable {
        let name: String
        let schema: JSONSchema
        let isRequired: Bool

        /// Returns a property that is always present.
        static func required(
            _ name: String, _ schema: JSONSchema, _ meaning: String = ""
        ) -> Property {
            Property(name: name, schema: schema.described(meaning), isRequired: true)
        }

        /// Returns a property that may be absent.
        static func optional(
            _ name: String, _ schema: JSONSchema, _ meaning: String = ""
        ) -> Property {
            Property(name: name, schema: schema.described(meaning), isRequired: false)
        }
    }

    /// Returns the schema of an object with `meaning` as its description; unchanged if that is
    /// empty.
    private func described(_ meaning: String) -> JSONSchema {
        guard !meaning.isEmpty, case .object(let members) = json else { return self }
        return JSONSchema(.object(members + [JSON.Member("description", .text(meaning))]))
    }
}

extension JSONSchema {
    /// Returns the schema of an object with these properties and no others.
    static func object(_ properties: Property...) -> JSONSchema { object(properties) }

    /// Returns the schema of an object with these properties and no others.
    static func object(_ properties: [Property]) -> JSONSchema {
        JSONSchema([
            "type": "object",
            "required": JSON(properties.filter(\.isRequired).map(\.name)),
            "properties": .object(properties.map { JSON.Member($0.name, $0.schema.json) }),
            "additionalProperties": false,
        ])
    }

    /// Returns the schema of a list; `count` is the allowed number of elements, `nil` for any.
    static func list(of element: JSONSchema, count: ClosedRange<Int>? = nil) -> JSONSchema {
        var members = [JSON.Member("type", "array"), JSON.Member("items", element.json)]
        if let count {
            members.append(JSON.Member("minItems", JSON(count.lowerBound)))
            members.append(JSON.Member("maxItems", JSON(count.upperBound)))
        }
        return JSONSchema(.object(members))
    }

    /// Returns the schema of an object with arbitrary names whose values all have one schema.
    static func map(of element: JSONSchema) -> JSONSchema {
        JSONSchema(["type": "object", "additionalProperties": element.json])
    }

    static let string = JSONSchema(["type": "string"])
    static let boolean = JSONSchema(["type": "boolean"])
    static let anyInteger = JSONSchema(["type": "integer"])
    /// A number from 0 to 1.
    static let fraction = JSONSchema(["type": "number", "minimum": 0, "maximum": 1])
    /// A count, or a duration; not negative.
    static let count = JSONSchema(["type": "integer", "minimum": 0])
    /// An identifier of 32 hexadecimal digits.
    static let id = text(pattern: "^[0-9a-f]{32}$")
    static let anyObject = JSONSchema(["type": "object"])
    static let alwaysTrue = JSONSchema(["const": true])

    /// Returns the schema of an integer in a range.
    static func integer(_ range: ClosedRange<Int64>) -> JSONSchema {
        JSONSchema([
            "type": "integer", "minimum": .number(range.lowerBound),
            "maximum": .number(range.upperBound),
        ])
    }

    /// Returns the schema of a text with `length` characters; its bytes are at least as many.
    static func text(length: ClosedRange<Int>, pattern: String? = nil) -> JSONSchema {
        let members = [
            JSON.Member("type", "string"), JSON.Member("minLength", JSON(length.lowerBound)),
            JSON.Member("maxLength", JSON(length.upperBound)),
        ]
        return JSONSchema(
            .object(members + (pattern.map { [JSON.Member("pattern", .text($0))] } ?? [])))
    }

    /// Returns the schema of a text that matches a regular expression.
    static func text(pattern: String) -> JSONSchema {
        JSONSchema(["type": "string", "pattern": .text(pattern)])
    }

    /// Returns the schema of a choice among texts.
    static func enumeration(_ choices: [String]) -> JSONSchema {
        JSONSchema(["type": "string", "enum": JSON(choices)])
    }

    /// Returns the schema of a choice among the raw values of an enumeration.
    static func enumeration<Choice: CaseIterable & RawRepresentable<String>>(
        _: Choice.Type
    ) -> JSONSchema {
        enumeration(Choice.allCases.map(\.rawValue))
    }

    static func anyOf(_ schemas: JSONSchema...) -> JSONSchema {
        JSONSchema(["anyOf": .list(schemas.map(\.json))])
    }

    /// Returns the schema of the same values and of `null`.
    static func nullable(_ schema: JSONSchema) -> JSONSchema {
        anyOf(schema, JSONSchema(["type": "null"]))
    }
}
