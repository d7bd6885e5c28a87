//! The number formats of a Word list (ECMA-376-1 §17.18.59), as Word shows their numbers.

/// Letters repeat: `z` is followed by `aa`, `bb`. Word ends this at 780, and no label is longer.
const REPEATED_MAX: usize = 780;

const CIRCLED: &str =
    "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳㉑㉒㉓㉔㉕㉖㉗㉘㉙㉚㉛㉜㉝㉞㉟㊱㊲㊳㊴㊵㊶㊷㊸㊹㊺㊻㊼㊽㊾㊿";
const HAN: &str = "一二三四五六七八九";
const LATIN: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const RUSSIAN: &str = "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ";
const STEMS: &str = "甲乙丙丁戊己庚辛壬癸";
const BRANCHES: &str = "子丑寅卯辰巳午未申酉戌亥";
const KANA: &str =
    "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン";
const HALF_KANA: &str = "ｱｲｳｴｵｶｷｸｹｺｻｼｽｾｿﾀﾁﾂﾃﾄﾅﾆﾇﾈﾉﾊﾋﾌﾍﾎﾏﾐﾑﾒﾓﾔﾕﾖﾗﾘﾙﾚﾛﾜｦﾝ";
const IROHA: &str = "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセスン";
const HALF_IROHA: &str = "ｲﾛﾊﾆﾎﾍﾄﾁﾘﾇﾙｦﾜｶﾖﾀﾚｿﾂﾈﾅﾗﾑｳヰﾉｵｸﾔﾏｹﾌｺｴﾃｱｻｷﾕﾒﾐｼヱﾋﾓｾｽﾝ";
const UNITS: [&str; 20] = [
    "",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const KOREAN: Counting<'_> =
    Counting { digits: "일이삼사오육칠팔구", units: "십백천만", one: One::Never };
const NATIVE_UNITS: [&str; 10] =
    ["", "하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉"];
const NATIVE_TENS: [&str; 10] =
    ["", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"];

/// `None`: the format has no such number, or this list lacks the format.
pub(super) fn numeral(format: &str, number: u32) -> Option<String> {
    let n = usize::try_from(number).ok()?;
    let text = match format {
        "decimal" | "decimalHalfWidth" => number.to_string(),
        "decimalZero" => format!("{number:02}"),
        "hex" => format!("{number:X}"),
        "numberInDash" => format!("- {number} -"),
        "ordinal" => format!("{number}{}", ordinal_ending(number)),
        "decimalFullWidth" | "decimalFullWidth2" => digits("０１２３４５６７８９", number),
        "koreanDigital" => digits("영일이삼사오육칠팔구", number),
        "koreanDigital2" => digits("零一二三四五六七八九", number),
        "ideographDigital" | "taiwaneseDigital" | "japaneseDigitalTenThousand" => {
            digits("〇一二三四五六七八九", number)
        }
        "thaiNumbers" => digits("๐๑๒๓๔๕๖๗๘๙", number),
        "hindiNumbers" => digits("०१२३४५६७८९", number),
        // "001, 002, 003, ...": as many digits as the first.
        _ if format.starts_with('0') => {
            let width = format.find(|c: char| !c.is_ascii_digit()).unwrap_or(format.len()).min(9);
            format!("{number:0width$}")
        }
        _ if number == 0 => return None,
        "upperRoman" => roman(number)?,
        "lowerRoman" => roman(number)?.to_ascii_lowercase(),
        "upperLetter" => repeated(LATIN, n)?,
        "lowerLetter" => repeated(LATIN, n)?.to_ascii_lowercase(),
        "chicago" => repeated("*†‡§", n)?,
        "russianUpper" => repeated(RUSSIAN, n)?,
        "russianLower" => repeated(RUSSIAN, n)?.to_lowercase(),
        "arabicAlpha" => repeated("أبتثجحخدذرزسشصضطظعغفقكلمنهوى", n)?,
        "arabicAbjad" => repeated("ابجدهوزحطيكلمنسعفصقرشتثخذضظغ", n)?,
        "hebrew2" => repeated("אבגדהוזחטיכלמנסעפצקרשת", n)?,
        "hindiVowels" => repeated("कखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसह", n)?,
        "thaiLetters" => repeated("กขคงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮ", n)?,
        "hebrew1" => hebrew(n)?,
        "cardinalText" => capital(&cardinal(n)?),
        "ordinalText" => capital(&ordinal(&cardinal(n)?)),
        "ganada" => cycled("가나다라마바사아자차카타파하", n)?,
        "chosung" => cycled("ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ", n)?,
        "aiueo" => cycled(HALF_KANA, n)?,
        "aiueoFullWidth" => cycled(KANA, n)?,
        "iroha" => cycled(HALF_IROHA, n)?,
        "irohaFullWidth" => cycled(IROHA, n)?,
        "ideographZodiacTraditional" => cycled(STEMS, n)? + &cycled(BRANCHES, n)?,
        "decimalEnclosedCircle" | "decimalEnclosedCircleChinese" => once(CIRCLED, n),
        "decimalEnclosedParen" => once("⑴⑵⑶⑷⑸⑹⑺⑻⑼⑽⑾⑿⒀⒁⒂⒃⒄⒅⒆⒇", n),
        "decimalEnclosedFullstop" => once("⒈⒉⒊⒋⒌⒍⒎⒏⒐⒑⒒⒓⒔⒕⒖⒗⒘⒙⒚⒛", n),
        "ideographEnclosedCircle" => once("㊀㊁㊂㊃㊄㊅㊆㊇㊈㊉", n),
        "ideographTraditional" => once(STEMS, n),
        "ideographZodiac" => once(BRANCHES, n),
        "koreanCounting" => KOREAN.write(n)?,
        "koreanLegal" if n < 100 => {
            NATIVE_TENS.get(n / 10)?.to_string() + NATIVE_UNITS.get(n % 10)?
        }
        "koreanLegal" => KOREAN.write(n)?,
        "japaneseCounting" => {
            Counting { digits: HAN, units: "十百千万", one: One::Never }.write(n)?
        }
        "chineseCounting"
        | "chineseCountingThousand"
        | "taiwaneseCounting"
        | "taiwaneseCountingThousand" => {
            Counting { digits: HAN, units: "十百千万", one: One::NotBeforeTen }.write(n)?
        }
        "japaneseLegal" => counted_always("壱弐参四伍六七八九", "拾百阡萬", n)?,
        "chineseLegalSimplified" => counted_always("壹贰叁肆伍陆柒捌玖", "拾佰仟万", n)?,
        "ideographLegalTraditional" => counted_always("壹貳參肆伍陸柒捌玖", "拾佰仟萬", n)?,
        _ => return None,
    };
    Some(text)
}

fn ordinal_ending(number: u32) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

fn digits(ten: &str, number: u32) -> String {
    let of = |digit: char| ten.chars().nth(digit.to_digit(10)? as usize);
    number.to_string().chars().filter_map(of).collect()
}

fn cycled(letters: &str, n: usize) -> Option<String> {
    letters.chars().cycle().nth(n.checked_sub(1)? % letters.chars().count()).map(String::from)
}

fn repeated(letters: &str, n: usize) -> Option<String> {
    let times = n.div_ceil(letters.chars().count());
    (n <= REPEATED_MAX).then(|| cycled(letters, n))?.map(|letter| letter.repeat(times))
}

/// Word writes the numbers beyond the last sign in digits.
fn once(signs: &str, n: usize) -> String {
    signs.chars().nth(n.saturating_sub(1)).map_or_else(|| n.to_string(), String::from)
}

fn roman(number: u32) -> Option<String> {
    const SIGNS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut rest = (number < 32_768).then_some(number)?;
    let mut text = String::new();
    for (value, sign) in SIGNS {
        while value <= rest {
            rest -= value;
            text.push_str(sign);
        }
    }
    Some(text)
}

/// 15 and 16 are 9 + 6 and 9 + 7: the regular letters are a name of God.
fn hebrew(n: usize) -> Option<String> {
    let hundreds = ["", "ק", "ר", "ש", "ת"].get(n / 100)?;
    let rest = match n % 100 {
        15 => "טו".to_owned(),
        16 => "טז".to_owned(),
        rest => {
            let tens = ["", "י", "כ", "ל", "מ", "נ", "ס", "ע", "פ", "צ"].get(rest / 10)?;
            let ones = ["", "א", "ב", "ג", "ד", "ה", "ו", "ז", "ח", "ט"].get(rest % 10)?;
            format!("{tens}{ones}")
        }
    };
    Some(format!("{hundreds}{rest}"))
}

fn cardinal(n: usize) -> Option<String> {
    let below = |n: usize| -> Option<String> {
        Some(match (UNITS.get(n), TENS.get(n / 10)?, UNITS.get(n % 10)?) {
            (Some(word), ..) => (*word).to_owned(),
            (None, tens, &"") => (*tens).to_owned(),
            (None, tens, ones) => format!("{tens}-{ones}"),
        })
    };
    let hundreds = match n / 100 {
        0 => String::new(),
        hundreds => format!("{} hundred ", UNITS.get(hundreds).filter(|_| n < 1_000)?),
    };
    Some(format!("{hundreds}{}", below(n % 100)?).trim_end().to_owned())
}

fn ordinal(cardinal: &str) -> String {
    let irregular = [
        ("one", "first"),
        ("two", "second"),
        ("three", "third"),
        ("five", "fifth"),
        ("eight", "eighth"),
        ("nine", "ninth"),
        ("twelve", "twelfth"),
        ("y", "ieth"),
        ("", "th"),
    ];
    let mut endings = irregular.into_iter();
    let found =
        endings.find_map(|(end, ordinal)| Some(cardinal.strip_suffix(end)?.to_owned() + ordinal));
    found.unwrap_or_default()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

fn counted_always(digits: &str, units: &str, n: usize) -> Option<String> {
    Counting { digits, units, one: One::Always }.write(n)
}

/// Numbers by digits and units: 二十一 is two tens and one.
struct Counting<'a> {
    digits: &'a str,
    /// Ten, hundred, thousand and ten thousand.
    units: &'a str,
    one: One,
}

/// Where a one stands before a unit. Where it does, a zero stands for a gap: 一百零一.
#[derive(PartialEq, Eq)]
enum One {
    Never,
    /// Eleven is 十一, a hundred 一百.
    NotBeforeTen,
    Always,
}

impl Counting<'_> {
    fn write(&self, n: usize) -> Option<String> {
        const VALUES: [usize; 5] = [10_000, 1_000, 100, 10, 1];
        let units = self.units.chars().rev().map(Some).chain([None]);
        let (mut rest, mut text, mut has_gap) = (n, String::new(), false);
        for (value, unit) in VALUES.into_iter().zip(units) {
            let count = rest / value;
            rest %= value;
            has_gap |= count == 0 && !text.is_empty();
            if count == 0 {
                continue;
            }
            let zero = std::mem::take(&mut has_gap) && self.one != One::Never;
            let is_bare = unit.is_some()
                && match self.one {
                    One::Never => count == 1,
                    One::NotBeforeTen => n < 20,
                    One::Always => false,
                };
            let digit = self.digits.chars().nth(count - 1)?;
            text.extend(
                [zero.then_some('零'), (!is_bare).then_some(digit), unit].into_iter().flatten(),
            );
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::numeral;

    #[test]
    fn numbers_are_written_in_the_format_of_their_level() {
        for (format, numbers) in [
            ("decimalZero", "1 01, 12 12, 100 100"),
            ("001, 002, 003, ...", "7 007, 1000 1000"),
            ("upperRoman", "4 IV, 49 XLIX, 1999 MCMXCIX"),
            ("lowerLetter", "1 a, 26 z, 27 aa, 28 bb, 53 aaa"),
            ("ordinal", "1 1st, 2 2nd, 3 3rd, 11 11th, 22 22nd, 113 113th"),
            ("cardinalText", "1 One, 13 Thirteen, 30 Thirty, 99 Ninety-nine"),
            ("ordinalText", "1 First, 12 Twelfth, 20 Twentieth, 21 Twenty-first"),
            ("chicago", "1 *, 4 §, 5 **"),
            ("ganada", "1 가, 14 하, 15 가"),
            ("chosung", "1 ㄱ, 14 ㅎ, 15 ㄱ"),
            ("koreanDigital", "1 일, 10 일영, 21 이일"),
            ("koreanDigital2", "3 三, 10 一零"),
            ("koreanCounting", "1 일, 10 십, 21 이십일, 101 백일, 12345 만이천삼백사십오"),
            ("koreanLegal", "1 하나, 15 열다섯, 20 스물, 99 아흔아홉, 110 백십"),
            ("japaneseCounting", "10 十, 21 二十一, 111 百十一"),
            (
                "chineseCountingThousand",
                "10 十, 21 二十一, 101 一百零一, 110 一百一十, 1010 一千零一十",
            ),
            ("ideographLegalTraditional", "10 壹拾, 21 貳拾壹, 1001 壹仟零壹"),
            ("decimalEnclosedCircle", "1 ①, 21 ㉑, 50 ㊿, 51 51"),
            ("decimalEnclosedParen", "20 ⒇, 21 21"),
            ("ideographTraditional", "1 甲, 10 癸, 11 11"),
            ("ideographZodiacTraditional", "1 甲子, 11 甲戌, 13 丙子, 61 甲子"),
            ("ideographDigital", "9 九, 10 一〇"),
            ("aiueoFullWidth", "46 ン, 47 ア"),
            ("irohaFullWidth", "25 ヰ, 48 ン, 49 イ"),
            ("hebrew1", "15 טו, 21 כא, 101 קא"),
            ("russianLower", "1 а, 30 аа"),
            ("numberInDash", "2 - 2 -"),
        ] {
            for pair in numbers.split(", ") {
                let (number, expected) = pair.split_once(' ').expect("a pair");
                let found = numeral(format, number.parse().expect("a number"));
                assert_eq!(found.as_deref(), Some(expected), "{format} {number}");
            }
        }
    }

    #[test]
    fn a_number_without_a_form_is_refused() {
        for (format, number) in [
            ("hindiCounting", 1),
            ("upperLetter", 781),
            ("lowerRoman", 0),
            ("hebrew1", 500),
            ("", 1),
        ] {
            assert_eq!(numeral(format, number), None, "{format} {number}");
        }
        for format in
            ["upperRoman", "lowerLetter", "koreanLegal", "cardinalText", "chineseCounting"]
        {
            for number in [0, 1, 99, 100, 9_999, 99_999, 100_000, u32::MAX] {
                let found = numeral(format, number);
                assert!(found.is_none_or(|text| text.len() < 1_000), "{format} {number}");
            }
        }
    }
}
