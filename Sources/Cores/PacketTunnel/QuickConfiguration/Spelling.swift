/// Finds what somebody may have meant.
public enum Spelling {
    /// The word among `known` that is closest to `word`, case aside; nil when none is close: one letter more, less, other or
    /// swapped for each three of the word.
    public static func nearest(to word: String, among known: some Sequence<String>) -> String? {
        let letters = Array(word.lowercased().utf8)
        guard !letters.isEmpty, letters.count <= 40 else { return nil }
        var best: (word: String, distance: Int)?
        for candidate in known {
            let other = Array(candidate.lowercased().utf8)
            guard other.count <= 40 else { continue }
            let distance = distance(letters, other)
            if distance <= max(1, min(letters.count, other.count) / 3), distance < best?.distance ?? .max {
                best = (candidate, distance)
            }
        }
        return best?.word
    }

    /// How many letters have to be inserted, deleted, replaced or swapped with their neighbour (restricted edit distance).
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for row in left.indices {
            var current = [row + 1]
            for column in right.indices {
                let replaced = last[column] + (left[row] == right[column] ? 0 : 1)
                var least = min(replaced, last[column + 1] + 1, current[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    least = min(least, beforeLast[column - 1] + 1)
                }
                current.append(least)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
