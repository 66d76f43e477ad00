# ruff: noqa: RUF001 - the Russian letters are intended.
"""Stop words: function words that are too frequent to be informative."""

from collections.abc import Iterable
from typing import Any

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

# Articles, pronouns, prepositions, conjunctions, auxiliaries. For English, scikit-learn's list, so that results agree.
_LISTS = {
    "german": """
        aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus
        bei bin bis bist da damit dann das dass daß dein deine deinem deinen deiner dem den denn der des dessen dich
        die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es
        etwas euch euer eure für gegen habe haben hat hatte hatten hier hin ich ihm ihn ihnen ihr ihre ihrem ihren
        ihrer im in ist ja jede jedem jeden jeder jedes jene jenem jenen jener jetzt kann kein keine keinem keinen
        keiner können könnte man manche mein meine meinem meinen meiner mich mir mit muss nach nicht nichts noch nun
        nur ob oder ohne schon sehr sein seine seinem seinen seiner selbst sich sie sind so solche soll sollte
        sondern über um und uns unser unsere unter viel vom von vor war waren was weg weil weiter welche welchem
        welchen welcher wenn werde werden wie wieder will wir wird wo wurde wurden zu zum zur zwar zwischen
    """,
    "french": """
        à ai aie ait alors as au aucun aussi autre aux avaient avais avait avant avec avez avoir avons c ce cela ces
        cet cette ceux chaque comme d dans de des du elle elles en encore entre es est et étaient étais était étant
        été être eu eux fait fut il ils j je l la là le les leur leurs lui m ma mais me même mes moi mon n ne ni nos
        notre nous on ont ou où par pas peu peut plus pour pourquoi qu quand que quel quelle quelles quels qui s sa
        sans se sera ses si son sont sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une vos
        votre vous y
    """,
    "spanish": """
        a al algo algunas algunos ante antes como con contra cual cuando de del desde donde durante e el él ella
        ellas ellos en entre era eran es esa esas ese eso esos esta está están estas este esto estos fue fueron ha
        había han has hasta hay la las le les lo los más me mi mí mis mucho muchos muy nada ni no nos nosotros
        nuestra nuestro o os otra otras otro otros para pero poco por porque que qué quien quienes se ser si sí sin
        sobre son soy su sus también tanto te tengo ti tiene tienen todo todos tu tú tus un una uno unos vosotros y
        ya yo
    """,
    "italian": """
        a ad agli ai al alla alle allo anche avere aveva c che chi ci come con contro cui da dagli dai dal dalla
        dalle dallo degli dei del della delle dello dentro di dove e è ed era erano essere fra gli ha hai hanno ho i
        il in io l la le lei li lo loro lui ma me mi mia mie miei mio ne negli nei nel nella nelle nello noi non
        nostra nostro o ogni per perché più quale quando quella quelle quelli quello questa queste questi questo se
        sei si sia siamo sono sopra sta su sua sue sugli sui sul sulla sulle sullo suo suoi ti tra tu tua tue tuo
        tuoi tutti tutto un una uno vi voi
    """,
    "portuguese": """
        a à ao aos aquela aquelas aquele aqueles aquilo as às até com como da das de dela delas dele deles depois do
        dos e é ela elas ele eles em entre era eram essa essas esse esses esta está estas este estes eu foi foram há
        isso isto já lhe lhes mais mas me mesmo meu meus minha minhas muito na não nas nem no nos nós nossa nosso
        num numa o os ou para pela pelas pelo pelos por qual quando que quem são se sem ser seu seus só sua suas
        também te tem têm teu teus tinha tu tua tuas um uma umas uns você vocês vos
    """,
    "dutch": """
        aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een en er ge geen
        had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je jij kan kon kunnen maar me meer men
        met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot u
        uit uw van veel voor waren was wat we werd wezen wie wij wil worden wordt zal ze zelf zich zij zijn zo
        zonder zou
    """,
    "swedish": """
        alla allt att av blev bli blir de dem den denna deras dess dessa det detta dig din dina ditt du där efter ej
        eller en er ett från för ha hade han hans har henne hennes hon honom hur här i icke ingen inom inte jag ju
        kan kunde man med mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss på samma
        sedan sig sin sina sitt ska skulle som så sådan till under upp ut utan vad var vara vars vart vem vi vid
        vilken är över
    """,
    "danish": """
        ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter
        eller en end er et for fra ham han hans har havde have hende hendes her hos hun hvad hvis hvor i ikke ind
        jeg jer jo kunne man mange med meget men mig min mine mit mod ned noget nogle nu når og også om op os over
        på selv sig sin sine sit skal skulle som sådan thi til ud under var vi vil ville vor være været
    """,
    "norwegian": """
        alle at av bare ble blei bli blir da de deg dem den denne der deres det dette di din disse du eller en enn
        er et ett etter for fra før ha hadde han hans har hennes her hun hva hvis hvor hvordan i ikke ingen inn ja
        jeg kan kom kunne man mange med meg meget men mer min mine mitt mot mye nei noe noen nå når og også om opp
        oss over på sa seg selv sin sine sitt skal skulle slik som så til um under ut uten var ved vi vil ville vår
        være vært å
    """,
    "finnish": """
        ei eivät emme en et ette että he heidän heille heitä hän häneen hänelle hänen hänet häntä ja jo joka jolla
        jonka jos jossa jota jotka kanssa keitä ken kenen ketkä ketä koska kuin kuka kun me mihin mikä minkä minua
        minulla minulle minun minut minä missä mistä mitkä mitä mukaan mutta muu myös ne niiden niin niissä niitä
        noin nuo nyt nämä näiden ole olen olet oli olimme olin olisi olit olivat olla olleet ollut on ovat poikki se
        sekä sen siihen siinä siitä sillä sinua sinun sinut sinä sitä tai te teidän teille teitä tuo tähän tällä
        tämä tämän tässä tätä vaan vai vaikka
    """,
    "russian": """
        а без более больше будет будто бы был была были было быть в вам вас вдруг ведь во вот впрочем все всегда
        всего всех всю вы где да даже для до другой его ее ей ему если есть еще ж же за здесь и из или им иногда их
        к как какая какой когда конечно кто куда ли лучше между меня мне много может можно мой моя мы на над надо
        наконец нас не него нее ней нельзя нет ни нибудь никогда ним них ничего но ну о об один он она они опять от
        перед по под после потом потому почти при про раз разве с сам свою себе себя сейчас со совсем так такой там
        тебя тем теперь то тогда того тоже только том тот три тут ты у уж уже хорошо хоть чего чей чем через что
        чтоб чтобы чуть эти этого этой этом этот эту я
    """,
}

STOP_WORDS: dict[str, frozenset[str]] = {"english": frozenset(ENGLISH_STOP_WORDS)} | {
    language: frozenset(words.split()) for language, words in _LISTS.items()
}


def stop_words_of(value: Any) -> frozenset[str]:
    """The stop words of a parameter that is False, the name of a language, or a list of words."""
    if value is False:
        return frozenset()
    if isinstance(value, str):
        if value not in STOP_WORDS:
            known = ", ".join(sorted(STOP_WORDS))
            raise ValueError(f"stop_words must be False, a list of words or a language ({known}). Got {value!r}.")
        return STOP_WORDS[value]
    if not isinstance(value, Iterable) or isinstance(value, bytes):
        raise ValueError(f"stop_words must be False, a list of words or the name of a language. Got {value!r}.")
    words = list(value)
    for word in words:
        if not isinstance(word, str):
            raise ValueError(f"stop_words must hold str. Got {word!r}.")
    return frozenset(words)
