"""Words and characters that open, join or fill phrases and name nothing themselves.

Four languages are enough for the texts that the fast tier has been tried on; in others a capital letter and
repetition still tell names, with more noise among repeated phrases.
"""

from __future__ import annotations

#: After these a noun phrase follows: articles, possessives, demonstratives, prepositions.
NOUN_OPENERS = frozenset(
    """
    a an the this that these those his her its their our my your some any each every no of in on at by for
    from with without into between among against during under over through about via per
    der die das den dem des ein eine einen einem einer im am zum zur von mit bei für auf aus durch
    le la les un une des du de au aux en dans par pour sur avec sans chez entre
    в во на с со из о об для по к ко от до у без при под над за между через про
    """.split()  # noqa: SIM905
)

_OTHERS = frozenset(
    """
    i you he she it we they me him them us who whom whose which what when where why how there here then than
    and or but nor so yet if because although though while whereas since until unless as is are was were be
    been being am do does did done have has had having will would shall should can could may might must not
    only also very more most less least many much few several other another such same own both all either
    neither however moreover furthermore therefore thus hence meanwhile instead indeed perhaps first second
    third next last later earlier now today yesterday tomorrow once again still even just after before to up
    down out off yes mr mrs ms dr chapter section part figure table
    und oder aber nicht ist sind war waren wird werden wurde hat haben hatte sie er es wir ihr ich du man sich
    auch nur noch schon als wie wenn dass weil nach vor zu
    et ou mais ne pas est sont était a ont il elle ils elles nous vous je on se ce cette ces que qui où dont
    plus aussi comme si
    и а но или не ни же ли бы то что чтобы как когда где если это этот эта эти тот та те он она оно они мы вы
    я его ее её их ему ей им нас вас меня мой свой был была было были есть быть будет может уже еще ещё только
    также позже ранее сегодня вчера завтра однако кроме например сначала там тут так вот все всё весь который
    которая которые потом затем теперь очень
    january february march april june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday
    """.split()  # noqa: SIM905
)

#: Case-folded.
FUNCTION_WORDS = NOUN_OPENERS | _OTHERS

#: Lower-case words inside a name: "University of Warsaw", "Ludwig van Beethoven", "Rio de la Plata".
PARTICLES = frozenset(
    """
    of the de la le les du des del della di da do dos von van der den zu bin ibn al
    """.split()  # noqa: SIM905
)

#: Han characters with which no name begins or ends (particles, pronouns, auxiliaries, verbs of speech).
EDGE_CHARACTERS = frozenset(
    "的了着著過过是在不就也都而及與与和或但有我你您他她它這这那哪个個們们把被讓让給给對对從从向到去來来又只便"
    "却卻要會会能可以所為为之其于於將将說说道曰問问叫見见吗嗎呢吧啊么麼得地很更最已再还還没沒無无等因如若则則此"
    "每各某几幾多少些何谁誰怎想看听聽知做走起出入上下里裏裡中後后前时時候且即乃亦者兩两一二三四五六七八九十百千"
)
